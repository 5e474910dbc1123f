package io.onceflux.chaos.proxy;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;

/** AMQP 0-9-1. The moment is {@code basic.ack}. */
final class AmqpProtocol implements Protocol {

    private static final int GREETING = 8; // "AMQP" and the version
    private static final int HEADER = 7; // type, channel, size of the payload
    private static final int END_MARK = 1;
    private static final int METHOD = 1;
    private static final int BASIC_ACK = 60 << 16 | 80;

    private boolean greeted;

    @Override
    public Frame next(DataInputStream fromClient) throws IOException {
        if (!greeted) {
            greeted = true;
            return new Frame(read(fromClient, GREETING), false);
        }
        byte[] header = read(fromClient, HEADER);
        int size = ByteBuffer.wrap(header).getInt(3);
        ByteBuffer frame = ByteBuffer.allocate(HEADER + size + END_MARK).put(header);
        fromClient.readFully(frame.array(), HEADER, size + END_MARK);
        boolean ack = header[0] == METHOD && frame.getInt(HEADER) == BASIC_ACK;
        return new Frame(frame.array(), ack);
    }

    private static byte[] read(DataInputStream in, int length) throws IOException {
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }
}
