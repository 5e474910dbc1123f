package io.onceflux.chaos.proxy;

import java.io.DataInputStream;
import java.io.IOException;

/** Knows just enough of what clients send to tell where a frame ends, and which one is the moment to do something. */
interface Protocol {

    /** The next frame; {@link java.io.EOFException} when the client is gone. */
    Frame next(DataInputStream fromClient) throws IOException;

    /**
     * A piece that is passed on as a whole.
     *
     * @param isMoment whether it is a COMMIT or an acknowledgement
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Frame(byte[] bytes, boolean isMoment) {}
}
