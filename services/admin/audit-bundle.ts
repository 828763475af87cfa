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
/** Members that people write, where no schema says more of them, such as settings of a network. */
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
]);
/** Members whose schema allows any text, and in which the service or a network puts a word of its own. */
const codes = new Set([
  ...[
    'step',
    'code',
    'platformCode',
    'externalId',
    'nativeId',
    'timezone',
    'type',
    'id',
    'changed',
    'reason',
    'scopes',
  ],
  ...['keyVersion', 'method', 'host', 'path'],
]);
const oneWord = /^\S{1,200}$/;
const identifier = /^[\w.:-]{1,64}$/;
const hidden = 'x';

/** As long as before, word by word: networks count characters and break lines. */
const blurred = (text: string): string => text.replace(/[^\s]/gu, hidden);

interface Schema {
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly pattern?: string;
}

const alternatives = (schema: Schema): readonly Schema[] => [
  schema,
  ...[...(schema.anyOf ?? []), ...(schema.allOf ?? [])].flatMap(alternatives),
];

/** What the schemas say of a member; none: it is any JSON. */
const membersOf = (schemas: readonly Schema[], name: string): readonly Schema[] =>
  schemas.flatMap((one) => one.properties?.[name] ?? Object.values(one.patternProperties ?? {})).flatMap(alternatives);

/** Whether it can hold nothing that a person wrote. */
const isClosed = (schemas: readonly Schema[], value: string): boolean =>
  schemas.some(
    (one) =>
      one.enum?.includes(value) === true ||
      one.const === value ||
      (one.type === 'string' && (one.format !== undefined || one.pattern !== undefined)),
  );

const redactedText = (value: string, name: string, schemas: readonly Schema[]): string => {
  if (secretName.test(name)) return '…';
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return `${URL.parse(value)?.origin ?? 'https://hidden.invalid'}/hidden`;
  if (isClosed(schemas, value)) return value;
  const isFreeText = schemas.some(({ type }) => type === 'string');
  const isCode = isFreeText ? codes.has(name) && oneWord.test(value) : !texts.has(name) && identifier.test(value);
  return isCode ? value : blurred(value);
};

/**
 * A text stays where its schema holds it to a form, or where the service or a network puts a code; every other one is blurred, so
 * that a member which a later release adds is.
 */
const redacted = (value: unknown, name: string, schemas: readonly Schema[]): unknown => {
  if (typeof value === 'string') return redactedText(value, name, schemas);
  if (Array.isArray(value)) {
    const items = schemas.flatMap((one) => (one.items === undefined ? [] : alternatives(one.items)));
    return value.map((one) => redacted(one, name, items));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([member, one]) => [member, redacted(one, member, membersOf(schemas, member))]),
  );
};

export const bundled = (
  event: Pick<DecodedEvent, 'id' | 'type' | 'revision' | 'stream' | 'data' | 'metadata'>,
): BundledEvent => {
  const { id, type, revision, metadata } = event;
  const schema = eventCatalogue[kindOf(event.stream)]?.[type]?.schema;
  const personal = schema === undefined ? [] : personalMembers(schema);
  const data = redacted(event.data, '', schema === undefined ? [] : alternatives(schema)) as Record<string, unknown>;
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
