import { type TSchema, Type } from 'typebox';
import { Instant } from '#schemas/common.ts';
import { streamKinds } from '#schemas/events.ts';
import { said } from '#schemas/published.ts';
import type { PublicEvent } from './webhook-events/common.ts';

/**
 * The events published to webhook endpoints, by type. Types are added, never changed. Every `data` except that of
 * `media.ready` names its resource and its client. It holds no personal member, and of a text at most an excerpt: an
 * envelope is stored and sent as it was rendered, so an erasure must find nothing in it.
 */
export const publicEvents: Readonly<Record<string, PublicEvent>> = Object.assign(
  {},
  ...Object.values(streamKinds).map(({ publishes }) => publishes ?? {}),
);

export const eventTypes: readonly string[] = Object.keys(publicEvents);

/** Filters that an endpoint may register: each type, each family, and all. */
export const eventFilters: readonly string[] = [
  ...eventTypes,
  ...new Set(
    eventTypes.flatMap((type) => {
      const parts = type.split('.');
      return parts.slice(1).map((_part, index) => `${parts.slice(0, index + 1).join('.')}.*`);
    }),
  ),
  '*',
];

export const Envelope = (type: string, data: TSchema) =>
  Type.Object({
    id: Type.String({
      format: 'uuid',
      description: 'The same through retries, resends and replays: deduplicate by it.',
    }),
    type: Type.Literal(type, { description: 'The type of the event.' }),
    created: said(Instant, 'When the state change was committed.'),
    data: said(data, 'Which resource changed, and how.'),
  });

/** `post.published`, `post.*` (every type that begins with `post.`) or `*`. */
const lets = (entry: string, type: string): boolean =>
  entry === type || entry === '*' || (entry.endsWith('.*') && type.startsWith(entry.slice(0, -1)));

/** Whether an endpoint with this filter receives events of this type. */
export const matches = (filter: readonly string[], type: string): boolean => filter.some((entry) => lets(entry, type));

/** Whether an entry of a filter includes any type; one that includes none is a caller's mistake. */
export const isKnownFilter = (entry: string): boolean => eventTypes.some((type) => lets(entry, type));
