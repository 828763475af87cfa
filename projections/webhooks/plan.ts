import { deliveryIdOf } from '#domain/ids.ts';
import type { Applied } from '#runtime/consuming/options.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { topicOf } from '#schemas/events.ts';
import { kindOf, partitionOf } from '#schemas/topics.ts';
import type { Handover, Leased } from './handover.ts';
import { isWithin, type Subscriber } from './interest.ts';
import type { Minted, MintedDelivery } from './mint.ts';
import type { Subjects } from './subjects.ts';
import { bytesOf, clientOf, envelope, publicTypesOf } from './types.ts';

/** Plans deliveries for events: their public types, their endpoints, their bytes. */

export interface PlanOptions {
  readonly subjects: Subjects;
  readonly partitions: number;
  /** Endpoints that receive an event under this type. */
  readonly subscribers: (event: DecodedEvent, type: string) => readonly Subscriber[];
  readonly replayId?: string;
}

const prefix = '{"workspaceId":"';
const idLength = 36;
const text = new TextDecoder();
const parsed = (metadata: Uint8Array) => JSON.parse(text.decode(metadata)) as { readonly workspaceId: string };

/** Reads the stored metadata without parsing it where it has our own byte layout. */
export const workspaceOf = (metadata: Uint8Array): string => {
  const bytes = Buffer.from(metadata.buffer, metadata.byteOffset, metadata.byteLength);
  const ours = bytes.toString('latin1', 0, prefix.length) === prefix;
  return ours ? bytes.toString('latin1', prefix.length, prefix.length + idLength) : parsed(metadata).workspaceId;
};

export const laneOf = (event: DecodedEvent, partitions: number): string =>
  `${topicOf(event.stream) ?? ''}-${partitionOf(event.metadata.partitionKey, partitions)}`;

/** All endpoints of an event share one envelope. @throws Unavailable when a stream could not be read */
export const plan = async (events: readonly DecodedEvent[], options: PlanOptions): Promise<Minted[]> => {
  const { subjects, partitions, subscribers, replayId } = options;
  const matched = new Map<DecodedEvent, { readonly type: string; readonly endpoints: readonly Subscriber[] }[]>();
  for (const event of events) {
    for (const type of publicTypesOf(event, kindOf(event.stream))) {
      const endpoints = subscribers(event, type);
      if (endpoints.length === 0) continue;
      const known = matched.get(event);
      if (known === undefined) matched.set(event, [{ type, endpoints }]);
      else known.push({ type, endpoints });
    }
  }
  if (matched.size === 0) return [];
  const about = await subjects.along(events, (event) => matched.has(event));
  const messages: Minted[] = [];
  for (const [event, types] of matched) {
    const subject = about.get(event);
    if (subject === undefined)
      throw new BrokenInvariant(`${event.stream} does not have ${event.id} where the log says`);
    for (const { type, endpoints } of types) {
      const made = envelope(type, event, subject);
      const clientId = clientOf(made, subject);
      const within = new Set(endpoints.flatMap((one) => (isWithin(one.clientIds, clientId) ? [one.endpointId] : [])));
      if (within.size === 0) continue;
      const messageId = made.id;
      messages.push({
        eventTime: event.metadata.occurredAt,
        messageId,
        workspaceId: event.metadata.workspaceId,
        type,
        position: event.position,
        lane: laneOf(event, partitions),
        clientId,
        body: bytesOf(made),
        deliveries: [...within].map((endpointId) => ({
          id: deliveryIdOf(messageId, endpointId, replayId),
          endpointId,
          replayId: replayId ?? null,
          trigger: replayId === undefined ? 'scheduled' : 'replay',
          leased: false,
        })),
      });
    }
  }
  return messages;
};

/** Slots requested from the sender of this thread, and which deliveries use them. */
class ReservedSlots {
  readonly #handover: Handover;
  readonly #leases = new Map<string, { readonly message: Minted; readonly delivery: MintedDelivery }>();

  private constructor(handover: Handover) {
    this.#handover = handover;
  }

  /** Requests a slot for each delivery; deliveries that get one are marked as leased. */
  static of(
    handover: Handover,
    messages: readonly Minted[],
  ): { readonly reserved: ReservedSlots; readonly messages: readonly Minted[] } {
    const reserved = new ReservedSlots(handover);
    const wanted = new Map<string, number>();
    for (const { deliveries } of messages)
      for (const { endpointId } of deliveries) wanted.set(endpointId, (wanted.get(endpointId) ?? 0) + 1);
    const granted = new Map<string, number>();
    const marked = messages.map((message) => ({
      ...message,
      deliveries: message.deliveries.map((delivery) => {
        const { endpointId } = delivery;
        const left =
          granted.get(endpointId) ?? handover.reserve(endpointId, message.workspaceId, wanted.get(endpointId) ?? 0);
        granted.set(endpointId, Math.max(0, left - 1));
        if (left === 0) return delivery;
        const leased = { ...delivery, leased: true };
        reserved.#leases.set(delivery.id, { message, delivery: leased });
        return leased;
      }),
    }));
    return { reserved, messages: marked };
  }

  /** After the commit: sends the new deliveries and gives back the slots of the others. */
  committed(minted: ReadonlySet<string>, leaseEnds: number): void {
    const leased: Leased[] = [];
    for (const [id, { message, delivery }] of this.#leases) {
      if (!minted.has(id)) {
        this.#handover.giveBack(delivery.endpointId, message.workspaceId, 1);
        continue;
      }
      const { eventTime, messageId, workspaceId, body, position, lane } = message;
      const { endpointId, trigger } = delivery;
      const fact = { eventTime, messageId, workspaceId, body, position, lane };
      leased.push({ ...fact, deliveryId: id, endpointId, attempt: 1, tries: 0, trigger, leaseEnds });
    }
    if (leased.length > 0) this.#handover.send(leased);
  }

  rolledBack(): void {
    for (const { message, delivery } of this.#leases.values())
      this.#handover.giveBack(delivery.endpointId, message.workspaceId, 1);
  }
}

/**
 * Mints with the free slots of the sender; gives them back where minting fails or yields nothing.
 * @param minting returns the deliveries that are new
 */
export const mintReserved = async (
  handover: Handover,
  planned: readonly Minted[],
  minting: (messages: readonly Minted[]) => Promise<ReadonlySet<string>>,
): Promise<Applied> => {
  const { reserved, messages } = ReservedSlots.of(handover, planned);
  const rolledBack = (): void => reserved.rolledBack();
  try {
    const leaseEnds = performance.now() + handover.leaseMs;
    // mutant: hand-over before the commit
    const minted = await minting(messages);
    return { committed: () => reserved.committed(minted, leaseEnds), rolledBack };
  } catch (error) {
    rolledBack();
    throw error;
  }
};
