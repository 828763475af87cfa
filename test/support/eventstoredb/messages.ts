/** The port's values → the protocol's messages, as the server writes them. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import status from '@eventstore/db-client/generated/status_pb.js';
import streams, {
  type AppendReq,
  type BatchAppendReq,
  type ReadReq,
} from '@eventstore/db-client/generated/streams_pb.js';
import anyPb from 'google-protobuf/google/protobuf/any_pb.js';
import emptyPb from 'google-protobuf/google/protobuf/empty_pb.js';
import type { AppendResult, EventToAppend, ExpectedRevision, RecordedEvent } from '#contracts/ports/event-store.ts';

const { AppendResp, BatchAppendResp, ReadResp, TombstoneResp } = streams;

export type Outcome =
  | { readonly kind: 'written'; readonly result: AppendResult }
  | { readonly kind: 'wrong'; readonly expected: ExpectedRevision; readonly actual: bigint | 'none' }
  | { readonly kind: 'too_large'; readonly max: number }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'busy' };

const bytesOf = (name: string): Uint8Array => Uint8Array.from(Buffer.from(name, 'utf8'));

export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

const identifier = (stream: string) => {
  const message = new shared.StreamIdentifier();
  message.setStreamName(bytesOf(stream));
  return message;
};

const allPosition = (position: bigint) => {
  const message = new shared.AllStreamPosition();
  message.setCommitPosition(position.toString());
  message.setPreparePosition(position.toString());
  return message;
};

type Proposed = AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage;

/** The event of a request with the content type it came with. */
export const proposedEvent = (message: Proposed): EventToAppend & { readonly contentType: string } => ({
  id: message.getId()?.getString() ?? '',
  type: message.getMetadataMap().get('type') ?? '',
  data: message.getData_asU8(),
  metadata: message.getCustomMetadata_asU8(),
  partitionKey: '',
  contentType: message.getMetadataMap().get('content-type') ?? '',
});

/** @throws Error on `any` and `stream_exists`, which our code must never send */
export const expectedOf = (options: {
  hasNoStream(): boolean;
  getRevision?(): string;
  hasRevision?(): boolean;
  getStreamPosition?(): string;
  hasStreamPosition?(): boolean;
}): ExpectedRevision => {
  if (options.hasNoStream()) return 'none';
  if (options.hasRevision?.()) return BigInt(options.getRevision?.() ?? '');
  if (options.hasStreamPosition?.()) return BigInt(options.getStreamPosition?.() ?? '');
  throw new Error('the append names no exact revision');
};

export const unaryAnswer = (outcome: Outcome) => {
  const answer = new AppendResp();
  if (outcome.kind === 'written') {
    const success = new AppendResp.Success();
    success.setCurrentRevision(outcome.result.revision.toString());
    if (outcome.result.position === null) success.setNoPosition(new shared.Empty());
    else {
      const position = new AppendResp.Position();
      position.setCommitPosition(outcome.result.position.toString());
      position.setPreparePosition(outcome.result.position.toString());
      success.setPosition(position);
    }
    answer.setSuccess(success);
  } else if (outcome.kind === 'wrong') {
    const wrong = new AppendResp.WrongExpectedVersion();
    if (outcome.actual === 'none') wrong.setCurrentNoStream(new shared.Empty());
    else wrong.setCurrentRevision(outcome.actual.toString());
    if (outcome.expected === 'none') wrong.setExpectedNoStream(new shared.Empty());
    else wrong.setExpectedRevision(outcome.expected.toString());
    answer.setWrongExpectedVersion(wrong);
  }
  return answer;
};

const rpcStatus = (message: string, details: Uint8Array, type: string) => {
  const packed = new anyPb.Any();
  packed.pack(details, type);
  const error = new status.Status();
  error.setMessage(message);
  error.setDetails(packed);
  return error;
};

const batchError = (outcome: Exclude<Outcome, { kind: 'written' }>) => {
  if (outcome.kind === 'wrong') {
    const wrong = new shared.WrongExpectedVersion();
    if (outcome.actual === 'none') wrong.setCurrentNoStream(new emptyPb.Empty());
    else wrong.setCurrentStreamRevision(outcome.actual.toString());
    if (outcome.expected === 'none') wrong.setExpectedNoStream(new emptyPb.Empty());
    else wrong.setExpectedStreamPosition(outcome.expected.toString());
    return rpcStatus('WrongExpectedVersion', wrong.serializeBinary(), 'event_store.client.WrongExpectedVersion');
  }
  if (outcome.kind === 'too_large') {
    const size = new shared.MaximumAppendSizeExceeded();
    size.setMaxappendsize(outcome.max);
    return rpcStatus('MaxSize', size.serializeBinary(), 'event_store.client.MaximumAppendSizeExceeded');
  }
  if (outcome.kind === 'deleted') {
    return rpcStatus('StreamDeleted', new shared.StreamDeleted().serializeBinary(), 'event_store.client.StreamDeleted');
  }
  return rpcStatus('Server Is Too Busy', new emptyPb.Empty().serializeBinary(), 'google.protobuf.Empty');
};

export const batchAnswer = (correlationId: string, stream: string, outcome: Outcome) => {
  const answer = new BatchAppendResp();
  const id = new shared.UUID();
  id.setString(correlationId);
  answer.setCorrelationId(id);
  answer.setStreamIdentifier(identifier(stream));
  if (outcome.kind !== 'written') {
    answer.setError(batchError(outcome));
    return answer;
  }
  const success = new BatchAppendResp.Success();
  success.setCurrentRevision(outcome.result.revision.toString());
  if (outcome.result.position === null) success.setNoPosition(new emptyPb.Empty());
  else success.setPosition(allPosition(outcome.result.position));
  answer.setSuccess(success);
  return answer;
};

export const eventMessage = (event: RecordedEvent, contentType: string) => {
  const recorded = new ReadResp.ReadEvent.RecordedEvent();
  const id = new shared.UUID();
  id.setString(event.id);
  recorded.setId(id);
  recorded.setStreamIdentifier(identifier(event.stream));
  recorded.setStreamRevision(event.revision.toString());
  recorded.setCommitPosition(event.position.toString());
  recorded.setPreparePosition(event.position.toString());
  const properties = recorded.getMetadataMap();
  properties.set('type', event.type);
  properties.set('content-type', contentType);
  properties.set('created', (BigInt(event.created.getTime()) * 10_000n).toString());
  recorded.setData(event.data);
  recorded.setCustomMetadata(event.metadata);
  const read = new ReadResp.ReadEvent();
  read.setEvent(recorded);
  read.setCommitPosition(event.position.toString());
  const answer = new ReadResp();
  answer.setEvent(read);
  return answer;
};

export const tombstoneAnswer = (position: bigint) => {
  const place = new TombstoneResp.Position();
  place.setCommitPosition(position.toString());
  place.setPreparePosition(position.toString());
  const answer = new TombstoneResp();
  answer.setPosition(place);
  return answer;
};

export const notFoundMessage = (stream: string) => {
  const missing = new ReadResp.StreamNotFound();
  missing.setStreamIdentifier(identifier(stream));
  const answer = new ReadResp();
  answer.setStreamNotFound(missing);
  return answer;
};

export const confirmationMessage = (id: string) => {
  const confirmation = new ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId(id);
  const answer = new ReadResp();
  answer.setConfirmation(confirmation);
  return answer;
};

export const caughtUpMessage = () => {
  const answer = new ReadResp();
  answer.setCaughtUp(new ReadResp.CaughtUp());
  return answer;
};

export const checkpointMessage = (commit: bigint, prepare: bigint = commit) => {
  const checkpoint = new ReadResp.Checkpoint();
  checkpoint.setCommitPosition(commit.toString());
  checkpoint.setPreparePosition(prepare.toString());
  const answer = new ReadResp();
  answer.setCheckpoint(checkpoint);
  return answer;
};

export interface Filter {
  passes(event: RecordedEvent): boolean;
  /** Considered events per checkpoint message. */
  readonly interval: number;
}

/** The server's filter: prefixes, or a regular expression anywhere in the name. Null when the request has none. */
export const filterOf = (options: ReadReq.Options): Filter | null => {
  const filter = options.getFilter();
  if (filter === undefined) return null;
  const byStream = filter.getStreamIdentifier();
  const expression = byStream ?? filter.getEventType();
  const prefixes = expression?.getPrefixList() ?? [];
  const regex = new RegExp(expression?.getRegex() ?? '');
  return {
    passes(event) {
      const name = byStream === undefined ? event.type : event.stream;
      return prefixes.length > 0 ? prefixes.some((prefix) => name.startsWith(prefix)) : regex.test(name);
    },
    interval: Math.max(1, filter.getCheckpointintervalmultiplier()) * (filter.hasMax() ? filter.getMax() : 32),
  };
};
