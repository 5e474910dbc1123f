package io.onceflux.chaos.proxy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Frames are passed on byte by byte, and the moments are found. */
class ProtocolTest {

    private final ByteArrayOutputStream sent = new ByteArrayOutputStream();
    private final DataOutputStream client = new DataOutputStream(sent);

    @Test
    void aCommitIsFoundAsASimpleQueryAndWhenItIsParsed() throws IOException {
        client.writeInt(8); // the first message has no type
        client.writeInt(196_608);
        message('Q', "BEGIN\0");
        message('P', "S_1\0INSERT INTO t VALUES ('COMMIT')\0\0\0");
        message('Q', "COMMIT\0");
        message('P', "\0commit\0\0\0");
        message('X', "");

        assertThat(moments(new PostgresProtocol())).containsExactly(false, false, false, true, true, false);
    }

    @Test
    void anAcknowledgementIsFoundAndAPublishedBodyThatLooksLikeOneIsNot() throws IOException {
        client.write("AMQP\0\0\011\1".getBytes(UTF_8));
        frame(1, 60, 80);
        frame(3, 60, 80);
        frame(1, 60, 40);
        frame(8);

        assertThat(moments(new AmqpProtocol())).containsExactly(false, true, false, false, false);
    }

    private void message(char type, String body) throws IOException {
        client.writeByte(type);
        client.writeInt(4 + body.length());
        client.write(body.getBytes(UTF_8));
    }

    private void frame(int type, int... shorts) throws IOException {
        client.writeByte(type);
        client.writeShort(1);
        client.writeInt(2 * shorts.length);
        for (int value : shorts) {
            client.writeShort(value);
        }
        client.writeByte(0xCE);
    }

    private List<Boolean> moments(Protocol protocol) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(sent.toByteArray()));
        ByteArrayOutputStream passedOn = new ByteArrayOutputStream();
        List<Boolean> moments = new ArrayList<>();
        try {
            while (true) {
                Protocol.Frame frame = protocol.next(in);
                passedOn.write(frame.bytes());
                moments.add(frame.isMoment());
            }
        } catch (EOFException end) {
            assertThat(passedOn.toByteArray()).isEqualTo(sent.toByteArray());
            return moments;
        }
    }
}
