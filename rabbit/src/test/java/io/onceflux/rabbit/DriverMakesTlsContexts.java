package io.onceflux.rabbit;

import reactor.blockhound.BlockHound;
import reactor.blockhound.integration.BlockHoundIntegration;

/** The R2DBC driver makes a TLS context for each connection on its event loop, and now and then reads from the system for it. */
public final class DriverMakesTlsContexts implements BlockHoundIntegration {

    @Override
    public void applyTo(BlockHound.Builder builder) {
        builder.allowBlockingCallsInside("io.r2dbc.postgresql.client.ReactorNettyClient", "registerSslHandler");
    }
}
