import { envelopeIdOf } from '#domain/ids.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { instantOf } from '#schemas/common.ts';
import { publicEvents } from '#schemas/http/webhook-events.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { type AnyPublisher, type AnyRule as Rule, type StreamSubject, untyped } from '../engine/publisher.ts';
import { projections } from '../index.ts';
import { refreshPublisher } from './render/refresh.ts';
import * as silent from './render/unpublished.ts';

/**
 * The pure table from domain events to public events, composed of one table for each stream kind. A payload is rendered
 * from the event and from its stream folded up to and including it, never from a read model: rendering it again for a
 * replay gives the same bytes.
 */

const publishers: Readonly<Record<string, AnyPublisher>> = {
  ...Object.fromEntries(
    projections.flatMap(({ models }) =>
      models.flatMap(({ kind, publisher }) => (publisher === null ? [] : [[kind, publisher] as const])),
    ),
  ),
  // It has no read model.
  refresh: untyped(refreshPublisher),
};

const tables: readonly (readonly [kind: string, rules: AnyPublisher['rules']])[] = [
  ...Object.entries(publishers).map(([kind, { rules }]) => [kind, rules] as const),
  ...Object.entries(silent),
];
const entries = tables.flatMap(([kind, rules]) =>
  Object.entries(rules).map(([type, given]) => ({ event: `${kind}/${type}`, given })),
);

/** `<kind>/<event>` → the public types it may give. */
export const published: ReadonlyMap<string, readonly string[]> = new Map(
  entries.flatMap(({ event, given }) => (typeof given === 'string' ? [] : [[event, given.map(({ type }) => type)]])),
);
/** `<kind>/<event>` → why it gives none. */
export const unpublished: ReadonlyMap<string, string> = new Map(
  entries.flatMap(({ event, given }) => (typeof given === 'string' ? [[event, given]] : [])),
);

const none: readonly Rule[] = [];
const rulesByKind = new Map(
  Object.entries(publishers).map(([kind, { rules }]) => [
    kind,
    new Map(Object.entries(rules).map(([type, given]) => [type, typeof given === 'string' ? none : given])),
  ]),
);
const rulesOf = (kind: string, type: string): readonly Rule[] => rulesByKind.get(kind)?.get(type) ?? none;

const typesByKind = new Map(
  [...rulesByKind].map(([kind, rules]) => [kind, [...new Set([...rules.values()].flat().map(({ type }) => type))]]),
);
/** Public types that events of this stream kind may give. */
export const typesOfKind = (kind: string): readonly string[] => typesByKind.get(kind) ?? [];

/** Stream kinds of which something is published. */
export const kindsPublished: readonly string[] = [...rulesByKind.keys()];

/** The public types that this event gives, mostly one or none. */
export const publicTypesOf = (
  event: Pick<DecodedEvent, 'type' | 'revision' | 'data'>,
  kind: string,
): readonly string[] => {
  const types: string[] = [];
  for (const { type, birth, when } of rulesOf(kind, event.type)) {
    const isBirth = birth === undefined || event.revision === 0 || birth(event.data);
    if (isBirth && (when === undefined || when(event.data))) types.push(type);
  }
  return types;
};

/** Whether rendering the public events of this type needs more than the event. */
export const needsStream = (kind: string, type: string): boolean =>
  rulesOf(kind, type).some(({ ofStream }) => ofStream !== undefined);

/** The fold of the subject for streams of this kind, one event after the other from the first on. */
export const subjectOf = (
  kind: string,
): { readonly initial: StreamSubject; evolve(subject: StreamSubject, event: DecodedEvent): StreamSubject } => ({
  initial: null,
  evolve: publishers[kind]?.evolve ?? ((subject) => subject),
});

/** @param subject the stream, folded up to and including the event; may be null where `needsStream` is false */
export const render = (type: string, event: DecodedEvent, subject: StreamSubject): unknown => {
  const rule = rulesOf(kindOf(event.stream), event.type).find((one) => one.type === type);
  const source = { data: event.data, id: idOf(event.stream), occurredAt: instantOf(event.metadata) };
  if (rule?.ofEvent !== undefined) return rule.ofEvent(source);
  if (rule?.ofStream !== undefined && subject !== null) return rule.ofStream(source, subject);
  throw new BrokenInvariant(`${event.type} in ${event.stream} cannot be rendered as ${type}`);
};

export interface Rendered {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly data: unknown;
}

const enveloped = (type: string, event: DecodedEvent, data: unknown): Rendered => ({
  id: envelopeIdOf(event.id, type),
  type,
  created: event.metadata.occurredAt,
  data,
});
export const bytesOf = (envelope: Rendered): Buffer => Buffer.from(JSON.stringify(envelope));

export const envelope = (type: string, event: DecodedEvent, subject: StreamSubject): Rendered =>
  enveloped(type, event, render(type, event, subject));

/** The client of a rendered event; null: it belongs to none. `media.ready` does not name it, its stream does. */
export const clientOf = ({ data }: Rendered, subject: StreamSubject): string | null => {
  const { clientId = (subject as { readonly clientId?: unknown } | null)?.clientId } = data as {
    readonly clientId?: unknown;
  };
  return typeof clientId === 'string' ? clientId : null;
};

export const envelopeBytes = (type: string, event: DecodedEvent, subject: StreamSubject): Buffer =>
  bytesOf(envelope(type, event, subject));

/** The example in the contract; `webhook.test` gets the endpoint's own id. */
export const sampleOf = (type: string, webhookId: string): unknown => {
  const known = Object.hasOwn(publicEvents, type) ? publicEvents[type] : undefined;
  if (known === undefined) throw new BrokenInvariant(`${type} is no public type`);
  return type === 'webhook.test' ? { ...(known.example as object), webhookId } : known.example;
};

/**
 * The body of a test delivery of this type. The sample belongs to a client of the endpoint, where that is limited.
 * @param event the request for it, in the endpoint's stream
 */
export const sampleBytes = (type: string, event: DecodedEvent, clientIds: readonly string[] | null = null): Buffer => {
  const sample = sampleOf(type, idOf(event.stream)) as Readonly<Record<string, unknown>>;
  const [own] = clientIds ?? [];
  const data = own === undefined || typeof sample.clientId !== 'string' ? sample : { ...sample, clientId: own };
  return bytesOf(enveloped(type, event, data));
};
