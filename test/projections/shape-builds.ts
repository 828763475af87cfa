/** Two builds that differ in the shape of a projection: what the former calls `name`, the newer also shouts. */
import { formerModel, type Model } from '#projections/engine/model.ts';
import { type Projection, projectionOf } from '#projections/index.ts';

const former = projectionOf('campaigns');

const shouting = (model: Model): Model =>
  ({
    ...model,
    columns: { ...model.columns, shout: 'text' },
    fold: (row, event) => {
      const own = model.fold(row, event);
      return own === null ? null : { ...own, shout: (own as { name: string }).name.toUpperCase() };
    },
  }) as Model;

/** As the newer build writes the model of the former. */
const asBefore = (model: Model): Model =>
  formerModel(model as Model<{ shout: string }>, { without: ['shout'], unread: [], said: (row) => row }) as Model;

export const builds = {
  former: [former],
  newer: [
    {
      ...former,
      shape: former.shape + 1,
      models: former.models.map(shouting),
      former: { ...former, models: former.models.map((model) => asBefore(shouting(model))) },
    },
  ],
} as const satisfies Readonly<Record<string, readonly Projection[]>>;
export type Build = keyof typeof builds;

/** Short, so that a test sees a shape go. */
export const dropAfterMs = 600;
