/** Effects outside of the database: written down within the transaction, and made good by a relay. */
@NullMarked
package io.onceflux.outbox;

import org.jspecify.annotations.NullMarked;
