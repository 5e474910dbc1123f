/** The rig of {@code dev/chaos}: messages, a seeded schedule of faults, consumers that are killed, and the checker. */
@NullMarked
package io.onceflux.chaos;

import org.jspecify.annotations.NullMarked;
