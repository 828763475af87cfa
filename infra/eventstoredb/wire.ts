/** Messages of the protocol ↔ values of the port. Bytes pass unchanged; commit and prepare positions are equal here. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams, { type ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { RecordedEvent } from '#contracts/ports/event-store.ts';

const { ReadReq } = streams;
type Options = InstanceType<typeof ReadReq.Options>;

/** Streams of the store itself, and links and tombstones in our streams. */
export const isSystem = (event: RecordedEvent): boolean => event.stream.startsWith('$') || event.type.startsWith('$');

const request = (fill: (options: Options) => void) => {
  const options = new ReadReq.Options();
  const uuid = new ReadReq.Options.UUIDOption();
  uuid.setString(new shared.Empty());
  options.setUuidOption(uuid);
  options.setResolveLinks(false);
  options.setReadDirection(ReadReq.Options.ReadDirection.FORWARDS);
  options.setNoFilter(new shared.Empty());
  fill(options);
  const req = new ReadReq();
  req.setOptions(options);
  return req;
};

/** Forwards from a revision, inclusive. */
export const streamRequest = (stream: string, from: bigint, limit: number) =>
  request((options) => {
    const of = new ReadReq.Options.StreamOptions();
    const identifier = new shared.StreamIdentifier();
    identifier.setStreamName(new TextEncoder().encode(stream));
    of.setStreamIdentifier(identifier);
    if (from > 0n) of.setRevision(from.toString());
    else of.setStart(new shared.Empty());
    options.setStream(of);
    options.setCount(String(limit));
  });

const allAfter = (options: Options, after: bigint | null): void => {
  const all = new ReadReq.Options.AllOptions();
  if (after === null || after < 0n) all.setStart(new shared.Empty());
  else {
    const position = new ReadReq.Options.Position();
    position.setCommitPosition(after.toString());
    position.setPreparePosition(after.toString());
    all.setPosition(position);
  }
  options.setAll(all);
};

/**
 * By stream name, since a filter has one kind only. The server sends a checkpoint every 32 × 16 considered events; the
 * adapter drops it.
 */
const withoutSystemStreams = (options: Options): void => {
  const expression = new ReadReq.Options.FilterOptions.Expression();
  expression.setRegex('^[^$]');
  const filter = new ReadReq.Options.FilterOptions();
  filter.setStreamIdentifier(expression);
  filter.setMax(32);
  filter.setCheckpointintervalmultiplier(16);
  options.setFilter(filter);
};

/** All streams from a position: inclusive, as reads of the protocol are. */
export const allRequest = (from: bigint | null, limit: number) =>
  request((options) => {
    allAfter(options, from);
    options.setCount(String(limit));
    withoutSystemStreams(options);
  });

/** The newest event of all streams. */
export const headRequest = () =>
  request((options) => {
    const all = new ReadReq.Options.AllOptions();
    all.setEnd(new shared.Empty());
    options.setAll(all);
    options.setReadDirection(ReadReq.Options.ReadDirection.BACKWARDS);
    options.setCount('1');
  });

/** All streams after a position: exclusive, as subscriptions of the protocol are. */
export const subscribeRequest = (after: bigint | null) =>
  request((options) => {
    allAfter(options, after);
    options.setSubscription(new ReadReq.Options.SubscriptionOptions());
    withoutSystemStreams(options);
  });

const utf8 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');

/** `created` counts 100 ns since 1970. */
const ticksPerMillisecond = 10_000;

/** The event in a response; null for every other kind of response. */
export const eventOf = (response: ReadResp): RecordedEvent | null => {
  const event = response.getEvent()?.getEvent();
  if (event === undefined) return null;
  const properties = event.getMetadataMap();
  return {
    stream: utf8(event.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()),
    id: event.getId()?.getString() ?? '',
    type: properties.get('type') ?? '',
    data: event.getData_asU8(),
    metadata: event.getCustomMetadata_asU8(),
    revision: BigInt(event.getStreamRevision()),
    position: BigInt(event.getCommitPosition()),
    created: new Date(Math.floor(Number(properties.get('created') ?? 0) / ticksPerMillisecond)),
  };
};
