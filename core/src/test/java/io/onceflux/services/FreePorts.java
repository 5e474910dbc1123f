package io.onceflux.services;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Ports for servers that go away and come back.
 *
 * <p>They lie below the range that systems give to outgoing connections: a port of that range could be taken while its
 * server is down, even by a client of the same server, whose retry then connects to itself.
 */
final class FreePorts {
    private static final int FIRST = 15_000;
    private static final int AFTER_LAST = 32_000;
    private static final int ATTEMPTS = 1_000;
    private static final Random RANDOM = new Random();
    private static final Set<Integer> GIVEN = ConcurrentHashMap.newKeySet();

    private FreePorts() {}

    /** A port that was free on loopback a moment ago, and that this JVM was not given before. */
    static int next() {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int port = FIRST + RANDOM.nextInt(AFTER_LAST - FIRST);
            if (isFree(port) && GIVEN.add(port)) {
                return port;
            }
        }
        throw new IllegalStateException("No free port between " + FIRST + " and " + AFTER_LAST + ".");
    }

    /** Whether something listens there; unlike {@link #isFree} this never takes the port from what is about to. */
    static boolean answers(int port) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1_000);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            return true;
        } catch (IOException e) {
            return false;
        }
    }
}
