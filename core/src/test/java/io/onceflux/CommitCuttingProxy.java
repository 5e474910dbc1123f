package io.onceflux;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/** Sits before PostgreSQL and cuts connections at a COMMIT: before the server gets it, or after the server has answered. */
final class CommitCuttingProxy implements AutoCloseable {

    private static final byte[] COMMIT = "COMMIT\0".getBytes(StandardCharsets.US_ASCII);

    private final ServerSocket listening;
    private final String host;
    private final int port;

    /** How many of the next COMMITs are cut. */
    final AtomicInteger toCutBefore = new AtomicInteger();

    final AtomicInteger toCutAfter = new AtomicInteger();
    final AtomicInteger cut = new AtomicInteger();

    CommitCuttingProxy(String host, int port) {
        this.host = host;
        this.port = port;
        try {
            listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        daemon(this::accept);
    }

    int port() {
        return listening.getLocalPort();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listening.accept();
                Socket server = new Socket(host, port);
                daemon(() -> pipe(client, server, true));
                daemon(() -> pipe(server, client, false));
            }
        } catch (IOException e) {
            // closed
        }
    }

    @SuppressWarnings("try") // both ends are closed when either is
    private void pipe(Socket from, Socket to, boolean fromClient) {
        byte[] buffer = new byte[64 * 1024];
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                boolean commit = fromClient && endsWithCommit(buffer, n);
                if (commit && takeOne(toCutBefore)) {
                    cut.incrementAndGet();
                    return;
                }
                if (commit && takeOne(toCutAfter)) {
                    // The answer must reach nobody: the other direction is stopped first.
                    answerAndDrop(buffer, n, to, from);
                    return;
                }
                out.write(buffer, 0, n);
            }
        } catch (IOException e) {
            // the other end is gone
        }
    }

    private void answerAndDrop(byte[] buffer, int n, Socket server, Socket client) throws IOException {
        client.shutdownOutput();
        server.getOutputStream().write(buffer, 0, n);
        while (!ended(server)) {
            Thread.onSpinWait();
        }
        cut.incrementAndGet();
    }

    /** The other thread reads the answer and fails to pass it on, which closes the server's end. */
    private static boolean ended(Socket server) {
        return server.isClosed();
    }

    private static boolean endsWithCommit(byte[] buffer, int n) {
        return n >= COMMIT.length && Arrays.equals(Arrays.copyOfRange(buffer, n - COMMIT.length, n), COMMIT);
    }

    private static boolean takeOne(AtomicInteger counter) {
        return counter.getAndUpdate(left -> Math.max(0, left - 1)) > 0;
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work, "commit-cutting-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() {
        try {
            listening.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
