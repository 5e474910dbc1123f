/** The machinery of {@code dev/demo}: servers, instances that are killed, deliveries, and the audit of the books. */
@NullMarked
package io.onceflux.examples.demo;

import org.jspecify.annotations.NullMarked;
