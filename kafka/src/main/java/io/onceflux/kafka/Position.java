package io.onceflux.kafka;

import io.onceflux.PermanentFailure;

/**
 * Where a record is: the id of a message that is identified by its position.
 *
 * @param topicId tells the topic from another of the same name that is made once it is deleted
 */
record Position(String topicId, int partition, long offset) {

    String asId() {
        return topicId + ":" + partition + ":" + offset;
    }

    /** @throws PermanentFailure if the id is none of a position */
    static Position ofId(String id) {
        String[] parts = id.split(":", -1);
        try {
            if (parts.length == 3) {
                return new Position(parts[0], Integer.parseInt(parts[1]), Long.parseLong(parts[2]));
            }
        } catch (NumberFormatException e) {
            throw new PermanentFailure("the message id '" + id + "' is no position in a topic", e);
        }
        throw new PermanentFailure("the message id '" + id + "' is no position in a topic");
    }
}
