/** What relays of an outbox can do, and how long entries wait for them. */
@NullMarked
package io.onceflux.benchmarks.outbox;

import org.jspecify.annotations.NullMarked;
