package io.onceflux.chaos.proxy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.function.Supplier;

/** A port on loopback that stays the same while the server behind it comes and goes, and that has traps. */
public final class TcpProxy implements AutoCloseable {

    private final ServerSocket listening;
    private final String host;
    private final int port;
    private final Supplier<Protocol> protocol;
    private final Traps traps = new Traps();

    private TcpProxy(String host, int port, Supplier<Protocol> protocol) {
        this.host = host;
        this.port = port;
        this.protocol = protocol;
        try {
            listening = new ServerSocket(0, 200, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        daemon(this::accept);
    }

    /** Its traps wait for a COMMIT. */
    public static TcpProxy beforePostgres(String host, int port) {
        return new TcpProxy(host, port, PostgresProtocol::new);
    }

    /** Its traps wait for an acknowledgement. */
    public static TcpProxy beforeRabbit(String host, int port) {
        return new TcpProxy(host, port, AmqpProtocol::new);
    }

    /** Host and port for clients. */
    public String address() {
        return "127.0.0.1:" + listening.getLocalPort();
    }

    /** From now on, after those that are armed already. */
    public void arm(Trap trap) {
        traps.arm(trap);
    }

    /** Connections pass unharmed from now on. */
    public void disarm() {
        traps.disarm();
    }

    private void accept() throws InterruptedException {
        try {
            while (true) {
                Socket client = listening.accept();
                daemon(() -> link(client));
            }
        } catch (IOException e) {
            // closed
        }
    }

    private void link(Socket client) throws InterruptedException {
        Socket server;
        try {
            server = new Socket(host, port);
            server.setTcpNoDelay(true);
            client.setTcpNoDelay(true);
        } catch (IOException e) {
            closeNow(client); // The server is away.
            return;
        }
        Link link = new Link(client, server, protocol.get(), traps);
        daemon(link::passAnswers);
        link.passRequests();
    }

    private static void closeNow(Socket socket) {
        try {
            socket.close();
        } catch (IOException e) {
            // It is gone in any case.
        }
    }

    private static void daemon(Work work) {
        Thread thread = new Thread(() -> run(work), "chaos-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private static void run(Work work) {
        try {
            work.run();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        try {
            listening.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @FunctionalInterface
    private interface Work {
        void run() throws InterruptedException;
    }
}
