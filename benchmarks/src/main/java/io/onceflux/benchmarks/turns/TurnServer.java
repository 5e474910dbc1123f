package io.onceflux.benchmarks.turns;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.benchmarks.scenario.Site;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Gives the forks their turns: one runs, the others wait. On loopback; a fork asks, in lines:
 *
 * <pre>
 * fork: hello CASES          server: a site for each case, six lines each
 * fork: turn                 server, when it is its turn: go, a line "CASE=RATE" for each full load known, and an empty line
 * fork: done CASE RATE
 * </pre>
 */
final class TurnServer implements AutoCloseable {

    private final ServerSocket socket;
    private final Supplier<Site> sites;
    private final Map<String, Peer> peers = new ConcurrentHashMap<>();
    private final Map<String, Double> rates = new HashMap<>();

    /**
     * @param sites a new place to work at for each call
     */
    TurnServer(Supplier<Site> sites) throws IOException {
        this.socket = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
        this.sites = sites;
    }

    int port() {
        return socket.getLocalPort();
    }

    /** Waits until so many forks have come, and each is set up and asks for its first turn. */
    void awaitAll(int forks) throws IOException {
        List<Peer> came = new ArrayList<>();
        while (came.size() < forks) {
            Peer peer = new Peer(socket.accept());
            peers.put(peer.fork.asText(), peer);
            came.add(peer);
        }
        for (Peer peer : came) {
            peer.awaitAsking();
        }
    }

    /** Lets a fork run one iteration, and waits for its end. */
    void turn(Fork fork) throws IOException {
        Peer peer = peers.get(fork.asText());
        if (peer == null) {
            throw new IllegalStateException("there is no fork " + fork);
        }
        peer.turn();
    }

    /** Forks that still wait for a turn fail. */
    @Override
    public void close() {
        try {
            socket.close();
            for (Peer peer : peers.values()) {
                peer.socket.close();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private final class Peer {

        private final Socket socket;
        private final BufferedReader in;
        private final PrintWriter out;
        private final Fork fork;
        private boolean asks;

        Peer(Socket socket) throws IOException {
            this.socket = socket;
            this.in = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            this.out = new PrintWriter(socket.getOutputStream(), true, UTF_8);
            this.fork = Fork.parse(expect("hello ").substring("hello ".length()));
            for (int i = 0; i < fork.cases().size(); i++) {
                Site site = sites.get();
                out.println(site.host());
                out.println(site.port());
                out.println(site.user());
                out.println(site.password());
                out.println(site.database());
                out.println(site.rabbitUri());
                out.println(site.kafkaBootstrap());
            }
        }

        void awaitAsking() throws IOException {
            if (!asks) {
                expect("turn");
                asks = true;
            }
        }

        void turn() throws IOException {
            awaitAsking();
            out.println("go");
            rates.forEach((what, rate) -> out.println(what + " " + rate));
            out.println();
            String[] done = expect("done ").split(" ", -1);
            rates.put(done[1], Double.valueOf(done[2]));
            asks = false;
        }

        private String expect(String start) throws IOException {
            String line = in.readLine();
            if (line == null || !line.startsWith(start)) {
                throw new IOException("a fork has ended where it should say " + start);
            }
            return line;
        }
    }
}
