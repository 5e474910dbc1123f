package io.onceflux.services;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.KafkaException;

/** Whether a broker answers at a bootstrap address. */
final class KafkaAddress {
    static final String EXAMPLE = "host:9092";
    private static final int LIMIT_MILLIS = 2_000;

    private KafkaAddress() {}

    /** The first of the addresses, for people. */
    static String first(String bootstrap) {
        int comma = bootstrap.indexOf(',');
        return comma < 0 ? bootstrap : bootstrap.substring(0, comma);
    }

    /** Asks for the nodes of the cluster. */
    static boolean answers(String bootstrap) {
        Map<String, Object> settings = Map.of(
                AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG,
                bootstrap,
                AdminClientConfig.RECONNECT_BACKOFF_MS_CONFIG,
                50,
                AdminClientConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG,
                100,
                AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG,
                LIMIT_MILLIS / 2,
                AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG,
                LIMIT_MILLIS);
        try (Admin admin = Admin.create(settings)) {
            return !admin.describeCluster().nodes().get().isEmpty();
        } catch (ExecutionException | KafkaException e) {
            return false;
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }
}
