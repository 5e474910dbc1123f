/** The contract and the pipeline of the idempotent consumer. */
@NullMarked
package io.onceflux;

import org.jspecify.annotations.NullMarked;
