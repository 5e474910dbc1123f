/** The loyalty service without claims: the number of the order is unique in the ledger. */
@NullMarked
package io.onceflux.examples.naturalkey;

import org.jspecify.annotations.NullMarked;
