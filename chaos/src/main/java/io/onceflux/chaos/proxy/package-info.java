/** Stands between the consumers and their servers, and cuts or delays connections at chosen moments of the protocol. */
@NullMarked
package io.onceflux.chaos.proxy;

import org.jspecify.annotations.NullMarked;
