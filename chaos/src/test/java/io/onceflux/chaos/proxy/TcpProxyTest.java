package io.onceflux.chaos.proxy;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a client and its server see of a proxy between them. The test is both. */
class TcpProxyTest {

    private static final int STARTUP = 8;
    private static final int COMMIT = 12;
    private static final Duration NONE = Duration.ZERO;

    private ServerSocket listening;
    private TcpProxy proxy;
    private Socket client;
    private Socket server;

    @BeforeEach
    void connect() throws IOException {
        listening = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        proxy = TcpProxy.beforePostgres("127.0.0.1", listening.getLocalPort());
        client = connectToProxy();
        server = listening.accept();
        client.setSoTimeout(10_000);
        server.setSoTimeout(10_000);
        DataOutputStream startup = new DataOutputStream(client.getOutputStream());
        startup.writeInt(STARTUP);
        startup.writeInt(0);
        receive(STARTUP);
    }

    @AfterEach
    void close() throws IOException {
        client.close();
        server.close();
        proxy.close();
        listening.close();
    }

    @Test
    void withoutATrapEverythingPasses() throws IOException {
        commit();
        receive(COMMIT);
        answer();

        assertThat(client.getInputStream().read()).isEqualTo('Z');
    }

    @Test
    void aCutBeforeACommitLetsNothingOfItThrough() throws IOException {
        proxy.arm(new Trap(Trap.Action.CUT_BEFORE, 0, 1, NONE, () -> {}));

        commit();

        assertThat(hasEnded(server)).isTrue();
        assertThat(hasEnded(client)).isTrue();
    }

    @Test
    void aCutBeforeTheAnswerComesWhenTheServerHasAnswered() throws Exception {
        CountDownLatch cut = new CountDownLatch(1);
        Trap trap = new Trap(Trap.Action.CUT_AFTER, 0, 1, NONE, cut::countDown);
        proxy.arm(trap);

        commit();
        receive(COMMIT);
        assertThat(cut.getCount()).isEqualTo(1);
        answer();

        assertThat(hasEnded(client)).isTrue();
        cut.await();
        assertThat(trap.hits()).isEqualTo(1);
    }

    @Test
    void aDelayHoldsACommitOrItsAnswerAndTheConnectionGoesOn() throws IOException {
        Duration delay = Duration.ofMillis(200);
        proxy.arm(new Trap(Trap.Action.DELAY_BEFORE, 0, 1, delay, () -> {}));
        proxy.arm(new Trap(Trap.Action.DELAY_AFTER, 0, 1, delay, () -> {}));
        long start = System.nanoTime();
        for (int i = 0; i < 2; i++) {
            commit();
            receive(COMMIT);
            answer();
            assertThat(client.getInputStream().read()).isEqualTo('Z');
        }

        assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThan(delay.multipliedBy(2));
    }

    @Test
    void aTrapLetsAsManyPassAsItWasTold() throws IOException {
        proxy.arm(new Trap(Trap.Action.CUT_BEFORE, 1, 1, NONE, () -> {}));

        commit();
        receive(COMMIT);
        commit();

        assertThat(hasEnded(server)).isTrue();
    }

    @Test
    void thePortStaysWhileTheServerIsAwayAndWhenItIsBack() throws IOException {
        int port = listening.getLocalPort();
        listening.close();
        server.close();
        assertThat(hasEnded(client)).isTrue();
        try (Socket inVain = connectToProxy()) {
            assertThat(hasEnded(inVain)).isTrue();
        }

        listening = new ServerSocket();
        listening.setReuseAddress(true);
        listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        client = connectToProxy();
        server = listening.accept();

        assertThat(server.isConnected()).isTrue();
    }

    private Socket connectToProxy() throws IOException {
        String address = proxy.address();
        return new Socket(
                InetAddress.getLoopbackAddress(), Integer.parseInt(address.substring(address.indexOf(':') + 1)));
    }

    private void commit() throws IOException {
        DataOutputStream out = new DataOutputStream(client.getOutputStream());
        out.write("Q\0\0\0\013COMMIT\0".getBytes(US_ASCII));
    }

    private void receive(int bytes) throws IOException {
        assertThat(server.getInputStream().readNBytes(bytes)).hasSize(bytes);
    }

    private void answer() throws IOException {
        server.getOutputStream().write('Z');
    }

    private static boolean hasEnded(Socket socket) throws IOException {
        try {
            return socket.getInputStream().read() < 0;
        } catch (SocketException reset) {
            return true;
        }
    }
}
