/**
 * Deliveries from RabbitMQ, settled after commit. The only place of OnceFlux that knows Reactor RabbitMQ and its client.
 */
@NullMarked
package io.onceflux.rabbit;

import org.jspecify.annotations.NullMarked;
