/** An effect outside of the database: a receipt that is sent by a service over HTTP, once for each order. */
@NullMarked
package io.onceflux.examples.outbox;

import org.jspecify.annotations.NullMarked;
