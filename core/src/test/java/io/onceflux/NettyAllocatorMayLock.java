package io.onceflux;

import reactor.blockhound.BlockHound;
import reactor.blockhound.integration.BlockHoundIntegration;

/** Netty's allocator takes a lock for a moment when event loops meet in it. That is Netty's choice, and no fault of a test. */
public final class NettyAllocatorMayLock implements BlockHoundIntegration {

    @Override
    public void applyTo(BlockHound.Builder builder) {
        builder.allowBlockingCallsInside("io.netty.buffer.AdaptivePoolingAllocator", "allocate")
                .allowBlockingCallsInside("io.netty.buffer.AdaptivePoolingAllocator$AdaptiveByteBuf", "deallocate");
    }
}
