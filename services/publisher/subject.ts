import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import { type AccountState, account } from '#domain/account.ts';
import { type ClientState, client } from '#domain/client.ts';
import { contentFor, type PlatformContent } from '#domain/content.ts';
import { type MediaState, media } from '#domain/media.ts';
import { effectiveOverrides, publishCheck, replyOverrides } from '#domain/platforms/index.ts';
import { post } from '#domain/post.ts';
import { disconnected, reauthRequired, threadInterrupted } from '#domain/publish-failures.ts';
import type { TargetState } from '#domain/target.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { PostBody } from '#schemas/post.ts';
import type { Failure, Segment } from '#schemas/target.ts';
import { type Assets, noSegmentFiles, type TargetFiles } from './media.ts';

/** What a target is about, folded from the streams: its content, its account, its client. */

export type LiveTarget = Exclude<TargetState, { status: 'none' }>;

export interface Content extends PlatformContent {
  readonly aiDisclosure: boolean;
  /** The whole of the post, where it brings files to this network: what they are needed for depends on all of it. */
  readonly body: PostBody | null;
}

/** Conditions on other streams; they hold as of this reading and are read anew for each claim. */
export interface Conditions {
  readonly account: Loaded<AccountState>;
  readonly client: Loaded<ClientState>;
  /** Monotonic milliseconds before the streams were asked. */
  readonly asOf: number;
}

const maxKept = 1_000;
/** Streams of files: a thread may name a thousand. */
const readAtOnce = 32;
/** Milliseconds for which several targets of one moment share a reading. */
const sharedMs = 200;

/** Reads that several targets need are made once: a post folded up to a revision never changes. */
export class Subjects {
  readonly #store: DomainStore;
  readonly #contents = new Map<string, Promise<Content>>();
  readonly #recent = new Map<string, { readonly asOf: number; readonly read: Promise<unknown> }>();

  constructor(store: DomainStore) {
    this.#store = store;
  }

  content(target: LiveTarget): Promise<Content> {
    const key = `${target.postId}/${target.postRevision}/${target.platform}`;
    const known = this.#contents.get(key);
    if (known !== undefined) return known;
    const read = this.#readContent(target);
    read.catch(() => this.#contents.delete(key));
    this.#contents.set(key, read);
    const [oldest] = this.#contents.keys();
    if (this.#contents.size > maxKept && oldest !== undefined) this.#contents.delete(oldest);
    return read;
  }

  async conditions(target: LiveTarget): Promise<Conditions> {
    const [itsAccount, itsClient] = await Promise.all([
      this.#shared(`account-${target.accountId}`, () => this.#store.load(account, target.accountId)),
      this.#shared(`client-${target.clientId}`, () => this.#store.load(client, target.clientId)),
    ]);
    return {
      account: itsAccount.value,
      client: itsClient.value,
      asOf: Math.min(itsAccount.asOf, itsClient.asOf),
    };
  }

  /** Those of the parts from this one on. Read for each claim: what is made of a file meanwhile is in its stream. */
  async media(content: Content, from: number): Promise<Assets> {
    const cover = content.body?.coverMediaId ?? null;
    const named = content.segments.slice(from).flatMap(({ mediaIds }) => mediaIds);
    const ids = [...new Set([...named, ...(cover === null ? [] : [cover])])];
    const found: [string, Loaded<MediaState>][] = [];
    for (let at = 0; at < ids.length; at += readAtOnce) {
      const some = ids.slice(at, at + readAtOnce);
      found.push(
        ...((await Promise.all(some.map(async (id) => [id, await this.#store.load(media, id)] as const))) as []),
      );
    }
    return new Map(found);
  }

  async #shared<T>(stream: string, load: () => Promise<T>): Promise<{ readonly asOf: number; readonly value: T }> {
    const now = performance.now();
    const known = this.#recent.get(stream);
    if (known !== undefined && now - known.asOf < sharedMs) {
      return { asOf: known.asOf, value: (await known.read) as T };
    }
    const read = load();
    read.catch(() => this.#recent.delete(stream));
    this.#recent.delete(stream);
    this.#recent.set(stream, { asOf: now, read });
    for (const [name, { asOf }] of this.#recent) {
      if (now - asOf < sharedMs) break;
      this.#recent.delete(name);
    }
    return { asOf: now, value: await read };
  }

  async #readContent(target: LiveTarget): Promise<Content> {
    const { state } = await this.#store.load(post, target.postId, target.postRevision);
    if (state.status !== 'live')
      throw new BrokenInvariant(`post ${target.postId} has no plan at revision ${target.postRevision}`);
    const content = contentFor(state.body, target.platform);
    const bare = content.segments.every(({ mediaIds }) => mediaIds.length === 0);
    return { ...content, aiDisclosure: state.body.aiDisclosure, body: bare ? null : state.body };
  }
}

/** Why it cannot go out, and which part of a thread is at fault, where it is one. */
export interface Fault {
  readonly failure: Failure;
  readonly part?: number | undefined;
}

/** Why it cannot be claimed at all, as its account stands; null when it can. */
export const accountFault = (state: AccountState): Fault | null => {
  if (state.status === 'connected') return null;
  return { failure: state.status === 'reauth_required' ? reauthRequired : disconnected };
};

/** A thread of which a part is out ends there when its client is archived, in the middle of an attempt too. */
export const interruption = (target: LiveTarget, { client: itsClient }: Conditions): Fault | null =>
  target.segments.length > 0 && itsClient.state.status !== 'live' ? { failure: threadInterrupted } : null;

/** Which segment of its thread goes out next; null when it is no thread. */
export const nextSegment = (target: LiveTarget, { segments }: Content): Segment | null =>
  segments.length === 1 ? null : { index: target.segments.length, of: segments.length };

/** Of a thread nothing goes out while a later segment would be refused. */
export const contentFault = (target: LiveTarget, content: Content, files: TargetFiles): Fault | null => {
  const { platform } = target;
  for (const [index, { content: text }] of content.segments.entries()) {
    if (index < target.segments.length) continue;
    const overrides = overridesOf(target, content, index);
    const failure = publishCheck({ platform, content: text, overrides, media: files[index]?.gate ?? [] });
    if (failure !== null) return content.segments.length === 1 ? { failure } : { failure, part: index };
  }
  return null;
};

const overridesOf = ({ platform }: LiveTarget, { overrides }: Content, index: number) =>
  index === 0 ? overrides : replyOverrides(platform, overrides);

/** The part that is next, or that a boundary was crossed for. */
const partOf = (target: LiveTarget, content: Content): Pick<PublishRequest, 'content' | 'thread'> => {
  const segment = nextSegment(target, content);
  const { content: text } = content.segments[segment?.index ?? 0] ?? content.segments[0];
  const parent = target.segments.at(-1);
  const [head] = target.segments;
  const replyTo = head && parent ? { parent: parent.externalId, head: head.externalId } : null;
  return { content: text, thread: segment && { ...segment, replyTo } };
};

export const requestOf = (
  target: LiveTarget,
  content: Content,
  itsAccount: AccountState,
  files: Pick<PublishRequest, 'media' | 'cover'>,
): PublishRequest => ({
  ...partOf(target, content),
  targetId: target.targetId,
  attempt: target.attempts,
  platform: target.platform,
  account: {
    id: target.accountId,
    externalId: itsAccount.status === 'none' ? '' : itsAccount.externalId,
    username: itsAccount.status === 'none' ? null : itsAccount.username,
  },
  // Known keys alone, defaults and the post's AI disclosure filled in. Stored as JSON and read back from it.
  overrides: effectiveOverrides(
    target.platform,
    overridesOf(target, content, target.segments.length),
    content.aiDisclosure,
  ) as { readonly [key: string]: Json },
  aiDisclosure: content.aiDisclosure,
  media: files.media,
  cover: files.cover,
  coverFrameMs: content.body?.coverFrameMs ?? null,
  checkpoints: target.checkpoints
    .filter(({ segment }) => (segment?.index ?? 0) === target.segments.length)
    .map(({ attempt, step, data, deadline }) => ({ attempt, step, data: data as Json, deadline })),
});

/** Those of the part that is next. */
export const filesOf = (target: LiveTarget, files: TargetFiles) => files[target.segments.length] ?? noSegmentFiles;
