/** Names that are promised already and that nothing appends or mints yet: the one place that calls a type planned. */

export const plannedEvents: readonly string[] = [];

export const plannedPublicTypes: readonly string[] = [];
