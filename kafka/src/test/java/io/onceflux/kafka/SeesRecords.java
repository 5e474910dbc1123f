package io.onceflux.kafka;

import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** An interceptor of the client that a test is interested in for {@link #onConsume} alone. */
interface SeesRecords extends ConsumerInterceptor<byte[], byte[]> {

    @Override
    default void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

    @Override
    default void configure(Map<String, ?> settings) {}

    @Override
    default void close() {}
}
