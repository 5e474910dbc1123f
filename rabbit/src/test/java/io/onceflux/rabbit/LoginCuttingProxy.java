package io.onceflux.rabbit;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Before a broker: cuts connections as a broker does that shuts down just as the client logs in. */
final class LoginCuttingProxy implements AutoCloseable {

    /** How many logins are still to be cut. */
    final AtomicInteger toCut;

    private final String host;
    private final int port;
    private final ServerSocket server;
    private final ExecutorService threads = Executors.newCachedThreadPool();

    LoginCuttingProxy(String host, int port, int cuts) throws IOException {
        this.host = host;
        this.port = port;
        this.toCut = new AtomicInteger(cuts);
        this.server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        threads.execute(this::accept);
    }

    int port() {
        return server.getLocalPort();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = server.accept();
                Socket broker = new Socket(host, port);
                boolean cut = toCut.getAndUpdate(left -> Math.max(0, left - 1)) > 0;
                threads.execute(() -> pump(client, broker, cut));
                threads.execute(() -> pump(broker, client, false));
            }
        } catch (IOException closed) {
            threads.shutdown();
        }
    }

    /** The client's first words are the protocol's header, the next are its login. */
    private static void pump(Socket from, Socket to, boolean cutSecond) {
        try (from;
                to) {
            InputStream in = from.getInputStream();
            byte[] buffer = new byte[8_192];
            int chunks = 0;
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                if (cutSecond && ++chunks == 2) {
                    return;
                }
                to.getOutputStream().write(buffer, 0, read);
            }
        } catch (IOException closed) {
            // The other direction ends with it.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
    }
}
