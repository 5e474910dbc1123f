package io.onceflux.rabbit;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.InvalidSetupException;
import java.net.URI;
import java.net.URISyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * Reads the broker's address. The client ignores the parts that it does not understand, and connects to localhost as guest
 * instead; here they are refused. No message repeats the URI, because it has the password.
 */
final class BrokerUri {

    private static final String FORM = "uri must be like amqp://user:password@host:5672/vhost";
    private static final String ENCODE =
            ": in user, password and virtual host, write '@', ':', '/', '#', '?' and '%' as %40, %3A, %2F, %23, %3F and %25";
    private static final int LARGEST_PORT = 65_535;

    private BrokerUri() {}

    static ConnectionFactory factory(String text) {
        URI uri = parse(text);
        require(uri.getRawFragment() == null && hasNoAtBehindTheHost(uri), ENCODE);
        require(uri.getRawAuthority() != null, ", but names no host");
        require(uri.getHost() != null, whyNoHost(uri.getRawAuthority()));
        require(
                uri.getPort() == -1 || (uri.getPort() > 0 && uri.getPort() <= LARGEST_PORT),
                ", but the port is none from 1 to " + LARGEST_PORT);
        ConnectionFactory factory = new ConnectionFactory();
        try {
            factory.setUri(uri);
        } catch (Exception e) { // Its message repeats the URI.
            throw new InvalidSetupException(FORM + " (" + e.getClass().getSimpleName() + ")" + ENCODE);
        }
        return factory;
    }

    private static URI parse(String text) {
        try {
            return new URI(text);
        } catch (URISyntaxException e) {
            throw new InvalidSetupException(
                    FORM + ", but character " + (e.getIndex() + 1) + " cannot be where it is" + ENCODE);
        }
    }

    /** One there was meant to be before the host: a '/' or '?' in the password came first. */
    private static boolean hasNoAtBehindTheHost(URI uri) {
        return !(uri.getRawPath() + uri.getRawQuery()).contains("@");
    }

    /** Java reads user and host only where all of them are as the standard says, and else tells nothing. */
    private static String whyNoHost(@Nullable String authority) {
        String address = authority == null ? "" : authority.substring(authority.lastIndexOf('@') + 1);
        return address.contains("_")
                ? ", and a host name in it cannot have '_': name the host with connectionFactory(...) and setHost"
                : ", but host and port cannot be told" + ENCODE;
    }

    private static void require(boolean holds, String why) {
        if (!holds) {
            throw new InvalidSetupException(FORM + why);
        }
    }
}
