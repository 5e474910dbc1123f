package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.ConnectionFactory;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;

/** A producer that writes bytes of its own as properties, which the client cannot: it encodes all of them as UTF-8. */
final class RawPublisher implements AutoCloseable {

    private static final int METHOD = 1;
    private static final int HEADER = 2;
    private static final int BODY = 3;
    private static final int LARGEST_FRAME = 131_072;
    private static final int CORRELATION_ID = 1 << 10;
    private static final int MESSAGE_ID = 1 << 7;

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;

    RawPublisher(ConnectionFactory to) throws IOException {
        socket = new Socket(to.getHost(), to.getPort());
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
        out.write(new byte[] {'A', 'M', 'Q', 'P', 0, 0, 9, 1});
        awaitMethod(10, 10);
        method(0, 10, 11, start -> {
            start.writeInt(0); // No client properties.
            shortText(start, "PLAIN".getBytes(US_ASCII));
            byte[] login = ("\0" + to.getUsername() + "\0" + to.getPassword()).getBytes(UTF_8);
            start.writeInt(login.length);
            start.write(login);
            shortText(start, "en_US".getBytes(US_ASCII));
        });
        awaitMethod(10, 30);
        method(0, 10, 31, tune -> {
            tune.writeShort(1);
            tune.writeInt(LARGEST_FRAME);
            tune.writeShort(0);
        });
        method(0, 10, 40, open -> {
            shortText(open, to.getVirtualHost().getBytes(UTF_8));
            open.writeShort(0);
        });
        awaitMethod(10, 41);
        method(1, 20, 10, open -> open.writeByte(0));
        awaitMethod(20, 11);
        method(1, 85, 10, confirms -> confirms.writeByte(0));
        awaitMethod(85, 11);
    }

    /** Publishes, confirmed. */
    void publish(String queue, byte[] messageId, byte[] correlationId, byte[] body) throws IOException {
        method(1, 60, 40, publish -> {
            publish.writeShort(0);
            shortText(publish, new byte[0]);
            shortText(publish, queue.getBytes(UTF_8));
            publish.writeByte(0);
        });
        frame(HEADER, 1, header -> {
            header.writeShort(60);
            header.writeShort(0);
            header.writeLong(body.length);
            header.writeShort(CORRELATION_ID | MESSAGE_ID);
            shortText(header, correlationId);
            shortText(header, messageId);
        });
        frame(BODY, 1, frame -> frame.write(body));
        awaitMethod(60, 80);
    }

    private void method(int channel, int ofClass, int method, Writing arguments) throws IOException {
        frame(METHOD, channel, frame -> {
            frame.writeShort(ofClass);
            frame.writeShort(method);
            arguments.to(frame);
        });
    }

    private void frame(int type, int channel, Writing content) throws IOException {
        ByteArrayOutputStream payload = new ByteArrayOutputStream();
        content.to(new DataOutputStream(payload));
        out.writeByte(type);
        out.writeShort(channel);
        out.writeInt(payload.size());
        payload.writeTo(out);
        out.writeByte(0xCE);
        out.flush();
    }

    private void awaitMethod(int ofClass, int method) throws IOException {
        int type = in.readUnsignedByte();
        in.readUnsignedShort();
        byte[] payload = in.readNBytes(in.readInt());
        in.readUnsignedByte();
        if (type != METHOD || payload[1] != ofClass || payload[3] != method) {
            throw new IOException("the broker said method %d.%d instead of %d.%d: %s"
                    .formatted(payload[1], payload[3], ofClass, method, new String(payload, US_ASCII)));
        }
    }

    private static void shortText(DataOutputStream to, byte[] text) throws IOException {
        to.writeByte(text.length);
        to.write(text);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private interface Writing {
        void to(DataOutputStream out) throws IOException;
    }
}
