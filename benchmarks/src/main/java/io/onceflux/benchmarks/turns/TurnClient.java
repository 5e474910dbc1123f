package io.onceflux.benchmarks.turns;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.variant.Case;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A fork's side of {@link TurnServer}. */
final class TurnClient implements AutoCloseable {

    /** A system property: where the server is. */
    static final String PORT = "onceflux.turns.port";

    private final Socket socket;
    private final BufferedReader in;
    private final PrintWriter out;
    private final List<Site> sites = new ArrayList<>();

    TurnClient(Fork fork) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), Integer.getInteger(PORT));
        in = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
        out = new PrintWriter(socket.getOutputStream(), true, UTF_8);
        out.println("hello " + fork.asText());
        for (int i = 0; i < fork.cases().size(); i++) {
            sites.add(new Site(line(), Integer.parseInt(line()), line(), line(), line(), line(), line()));
        }
    }

    /** Where each case works, in the order of the fork's cases. */
    List<Site> sites() {
        return sites;
    }

    /** Waits for this fork's turn; returns the messages a second at full load of what has run so far. */
    Map<String, Double> await() throws IOException {
        out.println("turn");
        if (!line().equals("go")) {
            throw new IOException("the server of turns said something else than go");
        }
        Map<String, Double> rates = new HashMap<>();
        for (String rate = line(); !rate.isEmpty(); rate = line()) {
            String[] parts = rate.split(" ", -1);
            rates.put(parts[0], Double.valueOf(parts[1]));
        }
        return rates;
    }

    void done(Case what, double perSecond) {
        out.println("done " + what + " " + perSecond);
    }

    private String line() throws IOException {
        String line = in.readLine();
        if (line == null) {
            throw new IOException("the server of turns has ended");
        }
        return line;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
