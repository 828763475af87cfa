import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { streamPages } from '#contracts/ports/event-store.ts';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { personalMembers } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { EventMetadata } from '#schemas/common.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { kindOf } from '#schemas/topics.ts';
import type { Admin, CommandOutput, Given } from './context.ts';

/**
 * One incident in one file, for somebody who may not see the installation: the events of a target and of what it came from, with
 * the recorded answers of its network. Nothing in it lets anybody in, tells of a person, or shows what was posted: texts keep
 * their lengths alone, since rules of networks count them.
 */

export interface BundledEvent {
  readonly id: string;
  readonly type: string;
  readonly revision: number;
  readonly data: Record<string, unknown>;
  readonly metadata: EventMetadata;
}

export interface Bundle {
  readonly format: 1;
  readonly targetId: string;
  readonly madeAt: string;
  /** Of the target, its post, its account, the requests for approval, and the calls of its network; each whole, and in its order. */
  readonly streams: Readonly<Record<string, readonly BundledEvent[]>>;
}

/** Events of all streams of a bundle. */
const maxEvents = 20_000;
const pageEvents = 500;

/** Members whose values may let somebody in. */
const secretName = /token|secret|password|authorization|signature|jwt|cookie|credential|(?:access|private|api)_?key/i;
/** Members that people write. */
const texts = new Set([
  'content',
  'text',
  'title',
  'description',
  'comment',
  'firstComment',
  'altText',
  'name',
  'message',
  'answer',
]);
const hidden = 'x';

/** As long as before, word by word: networks count characters and break lines. */
const blurred = (text: string): string => text.replace(/[^\s]/gu, hidden);

const redacted = (value: unknown, name: string): unknown => {
  if (typeof value === 'string') {
    if (secretName.test(name)) return '…';
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return `${URL.parse(value)?.origin ?? 'https://hidden.invalid'}/hidden`;
    return texts.has(name) ? blurred(value) : value;
  }
  if (Array.isArray(value)) return value.map((one) => redacted(one, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([member, one]) => [member, redacted(one, member)]));
};

const bundled = (event: DecodedEvent): BundledEvent => {
  const { id, type, revision, metadata } = event;
  const schema = eventCatalogue[kindOf(event.stream)]?.[type]?.schema;
  const personal = schema === undefined ? [] : personalMembers(schema);
  const data = redacted(event.data, '') as Record<string, unknown>;
  for (const member of personal)
    if (typeof data[member] === 'string') data[member] = blurred(String(event.data[member]));
  return { id, type, revision, data, metadata: { ...metadata, actor: { type: metadata.actor.type, id: 'hidden' } } };
};

const wholeOf = async ({ eventStore, codec }: Admin, stream: string): Promise<readonly DecodedEvent[]> => {
  const all: DecodedEvent[] = [];
  for await (const page of streamPages(eventStore, stream, pageEvents)) {
    all.push(...(await codec.decodeAll(page)));
    if (all.length > maxEvents) throw new Error(`${stream} has more than ${maxEvents} events.`);
  }
  return all;
};

/** @throws Error where there is no such target */
export const bundleOf = async (admin: Admin, targetId: string): Promise<Bundle> => {
  const own = await wholeOf(admin, `target-${targetId}`);
  const state = foldEvents(target, own);
  if (state.status === 'none') throw new Error(`There is no target ${targetId}.`);
  const { postId, accountId } = state.common;
  const posted = await wholeOf(admin, `${post.kind}-${postId}`);
  const approvals = posted.flatMap(({ type, data }) =>
    type === 'PostSubmittedForApproval' ? [`approval-${String(data.approvalId)}`] : [],
  );
  const names = [`targetcalls-${targetId}`, `account-${accountId}`, ...approvals];
  const streams: [string, readonly DecodedEvent[]][] = [
    [`target-${targetId}`, own],
    [`${post.kind}-${postId}`, posted],
  ];
  for (const name of names) streams.push([name, await wholeOf(admin, name)]);
  return {
    ...{ format: 1, targetId, madeAt: new Date(admin.operator.clock()).toISOString() },
    streams: Object.fromEntries(streams.map(([name, events]) => [name, events.map(bundled)])),
  };
};

export const writeBundle = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const targetId = given.at(0).replace(/^target-/, '');
  const bundle = await bundleOf(admin, targetId);
  const file = path.resolve(given.flag('to') ?? `incident-${targetId}.json`);
  await writeFile(file, `${JSON.stringify(bundle, null, 1)}\n`, { mode: 0o600, flag: 'wx' });
  const counts = Object.entries(bundle.streams).map(([stream, events]) => ({ stream, events: events.length }));
  return { file, targetId, streams: counts };
};
