package io.onceflux.chaos.proxy;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.time.Duration;
import java.util.Optional;

/** One client's connection through the proxy: a thread reads its frames, another hands the answers back. */
final class Link {

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(5);
    private static final int BUFFER = 64 * 1024;

    private final Socket client;
    private final Socket server;
    private final Protocol protocol;
    private final Traps traps;
    private final Gate gate = new Gate();

    Link(Socket client, Socket server, Protocol protocol, Traps traps) {
        this.client = client;
        this.server = server;
        this.protocol = protocol;
        this.traps = traps;
    }

    /** Until either end is gone or the connection is cut; then both ends are closed. */
    @SuppressWarnings("try") // both ends are closed when either is
    void passRequests() throws InterruptedException {
        try (client;
                server) {
            DataInputStream in = new DataInputStream(new BufferedInputStream(client.getInputStream(), BUFFER));
            OutputStream out = new BufferedOutputStream(server.getOutputStream(), BUFFER);
            boolean goesOn = true;
            while (goesOn) {
                goesOn = pass(protocol.next(in), out);
                if (in.available() == 0) {
                    out.flush();
                }
            }
        } catch (IOException e) {
            // One end is gone.
        } finally {
            gate.shut();
        }
    }

    @SuppressWarnings("try") // both ends are closed when either is
    void passAnswers() throws InterruptedException {
        byte[] buffer = new byte[BUFFER];
        try (client;
                server) {
            InputStream in = server.getInputStream();
            OutputStream out = client.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                gate.pass();
                out.write(buffer, 0, n);
            }
        } catch (IOException e) {
            // One end is gone.
        }
    }

    /** Whether the connection goes on. */
    private boolean pass(Protocol.Frame frame, OutputStream out) throws IOException, InterruptedException {
        Optional<Trap> sprung = frame.isMoment() ? traps.moment() : Optional.empty();
        if (sprung.isEmpty()) {
            out.write(frame.bytes());
            return true;
        }
        out.flush();
        Trap trap = sprung.get();
        return switch (trap.action()) {
            case CUT_BEFORE -> {
                trap.atTheMoment().run();
                yield false;
            }
            case CUT_AFTER -> {
                gate.hold();
                send(frame, out);
                gate.awaitAnswer(ANSWER_LIMIT);
                trap.atTheMoment().run();
                yield false;
            }
            case DELAY_BEFORE -> {
                Thread.sleep(trap.delay().toMillis());
                send(frame, out);
                yield true;
            }
            case DELAY_AFTER -> {
                gate.hold();
                send(frame, out);
                Thread.sleep(trap.delay().toMillis());
                gate.open();
                yield true;
            }
        };
    }

    private static void send(Protocol.Frame frame, OutputStream out) throws IOException {
        out.write(frame.bytes());
        out.flush();
    }
}
