package io.onceflux.services;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;

/** What an {@code amqp://} or {@code amqps://} URI says, and whether a broker answers there. */
final class AmqpAddress {
    static final String EXAMPLE = "amqp://user:password@host:5672/vhost";
    private static final int LIMIT_MILLIS = 2_000;
    private static final byte[] HEADER = "AMQP\0\0\u0009\u0001".getBytes(US_ASCII);
    private static final int METHOD_FRAME = 1;

    private AmqpAddress() {}

    static URI parse(String address) {
        URI uri;
        try {
            uri = URI.create(address);
        } catch (IllegalArgumentException e) {
            throw notAnAddress(); // without its cause, which quotes the address and so the password
        }
        if (uri.getHost() == null || !("amqp".equals(uri.getScheme()) || isTls(uri))) {
            throw notAnAddress();
        }
        return uri;
    }

    static URI ofGuest(String host, int port) {
        return URI.create("amqp://guest:guest@" + host + ":" + port);
    }

    static int port(URI uri) {
        return uri.getPort() >= 0 ? uri.getPort() : isTls(uri) ? 5671 : 5672;
    }

    /** Asks for the first frame of AMQP 0-9-1, which a node sends when it takes clients; with TLS only for a connection. */
    static boolean answers(URI uri) {
        try (Socket socket = new Socket()) {
            socket.setSoTimeout(LIMIT_MILLIS);
            socket.connect(new InetSocketAddress(uri.getHost(), port(uri)), LIMIT_MILLIS);
            if (isTls(uri)) {
                return true;
            }
            socket.getOutputStream().write(HEADER);
            return socket.getInputStream().read() == METHOD_FRAME;
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean isTls(URI uri) {
        return "amqps".equals(uri.getScheme());
    }

    private static IllegalStateException notAnAddress() {
        return new IllegalStateException(RabbitService.URI_VARIABLE + " is not of the form " + EXAMPLE + ".");
    }
}
