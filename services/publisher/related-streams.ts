import { type AccountState, account } from '#domain/account.ts';
import { type ClientState, client } from '#domain/client.ts';
import { birthOf } from '#domain/decider.ts';
import { type MediaState, media } from '#domain/media.ts';
import { contentFor, type PlatformContent } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { WorkspaceCache } from '#runtime/eventing/workspace-cache.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { PostBody } from '#schemas/post.ts';

/** Reads the streams that a target depends on: its post, account, client and files. */

export interface Content extends PlatformContent {
  /** When the post was made; a draft may be older than its targets by far. */
  readonly bornAt: string;
  readonly aiDisclosure: boolean;
  /** The whole post, because the needs of a file depend on all of it. Null: the post has no files for this network. */
  readonly body: PostBody | null;
}

/** Account and client, which decide whether a claim is allowed. Each claim reads them anew, because they change. */
export interface Conditions {
  readonly account: Loaded<AccountState>;
  readonly client: Loaded<ClientState>;
  /** Monotonic milliseconds, taken before the streams were read. */
  readonly asOf: number;
}

/** By the asset's id. */
export type Assets = ReadonlyMap<string, Loaded<MediaState>>;

/** Bytes of the contents that are kept, of all workspaces together. */
const maxKeptBytes = 64 * 1024 * 1024;
/** Counted for each content beside its text: so some thousand short ones are kept at most. */
const contentBytes = 16 * 1024;
/** Streams of files read at once; a thread may name a thousand files. */
const readAtOnce = 32;
/** Milliseconds for which targets share a reading; many are due at the same instant. */
const sharedMs = 200;
/** Milliseconds after which conditions are read anew. */
const conditionsAgeMs = 2_000;

interface KeptContent {
  readonly workspaceId: string;
  readonly size: number;
  readonly content: Content;
}

/**
 * Shares readings between targets. A post folded up to a revision never changes, so its content is kept while there is
 * room: a post may have 400 KiB, and one workspace thousands of them.
 */
export class RelatedStreams {
  readonly #store: Pick<DomainStore, 'load'>;
  readonly #contents: WorkspaceCache<KeptContent>;
  /** Contents that are being read. */
  readonly #reading = new Map<string, Promise<Content>>();
  readonly #recent = new Map<string, { readonly asOf: number; readonly read: Promise<unknown> }>();

  constructor(store: Pick<DomainStore, 'load'>, keptBytes = maxKeptBytes) {
    this.#store = store;
    this.#contents = new WorkspaceCache(keptBytes);
  }

  async content(target: ScheduledTarget): Promise<Content> {
    const key = `${target.common.postId}/${target.common.postRevision}/${target.common.platform}`;
    const known = this.#contents.get(key);
    if (known !== undefined) return known.content;
    const reading = this.#reading.get(key);
    if (reading !== undefined) return reading;
    const read = this.#readContent(target).then((kept) => {
      this.#contents.set(key, kept);
      return kept.content;
    });
    this.#reading.set(key, read);
    try {
      return await read;
    } finally {
      this.#reading.delete(key);
    }
  }

  /** @param maxAgeMs of a reading that another target made; 0: both are read after this is called */
  async conditions({ common }: ScheduledTarget, maxAgeMs = sharedMs): Promise<Conditions> {
    const { accountId, clientId } = common;
    const [ofAccount, ofClient] = await Promise.all([
      this.#shared(`account-${accountId}`, maxAgeMs, () => this.#store.load(account, accountId)),
      this.#shared(`client-${clientId}`, maxAgeMs, () => this.#store.load(client, clientId)),
    ]);
    return { account: ofAccount.value, client: ofClient.value, asOf: Math.min(ofAccount.asOf, ofClient.asOf) };
  }

  /**
   * Files of the segments from this index on, and the cover. Each claim reads them anew, because renditions may have
   * become ready since.
   */
  async media(content: Content, from: number): Promise<Assets> {
    const cover = content.body?.coverMediaId ?? null;
    const named = content.segments.slice(from).flatMap(({ mediaIds }) => mediaIds);
    const ids = [...new Set([...named, ...(cover === null ? [] : [cover])])];
    const found: (readonly [string, Loaded<MediaState>])[] = [];
    for (let at = 0; at < ids.length; at += readAtOnce) {
      const some = ids.slice(at, at + readAtOnce);
      found.push(...(await Promise.all(some.map(async (id) => [id, await this.#store.load(media, id)] as const))));
    }
    return new Map(found);
  }

  async #shared<T>(
    stream: string,
    maxAgeMs: number,
    load: () => Promise<T>,
  ): Promise<{ readonly asOf: number; readonly value: T }> {
    const now = performance.now();
    const known = this.#recent.get(stream);
    if (known !== undefined && now - known.asOf < maxAgeMs) {
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

  async #readContent(target: ScheduledTarget): Promise<KeptContent> {
    const { state, events } = await this.#store.load(post, target.common.postId, target.common.postRevision);
    if (state.status !== 'live')
      throw new BrokenInvariant(`post ${target.common.postId} has no plan at revision ${target.common.postRevision}`);
    const body = newestBody(state);
    const content = contentFor(body, target.common.platform);
    const bare = content.segments.every(({ mediaIds }) => mediaIds.length === 0);
    const { occurredAt = '', workspaceId = '' } = birthOf(post, events)?.metadata ?? {};
    const kept = { ...content, bornAt: occurredAt, aiDisclosure: body.aiDisclosure, body: bare ? null : body };
    return { workspaceId, size: contentBytes + Buffer.byteLength(JSON.stringify(kept)), content: kept };
  }
}

/** The conditions of one target, read anew when they are old. */
export class TargetConditions {
  readonly #streams: RelatedStreams;
  #latest: Conditions;

  constructor(streams: RelatedStreams, read: Conditions) {
    this.#streams = streams;
    this.#latest = read;
  }

  /** The latest reading, however old. */
  get latest(): Conditions {
    return this.#latest;
  }

  async current(target: ScheduledTarget): Promise<Conditions> {
    if (performance.now() - this.#latest.asOf >= conditionsAgeMs) this.#latest = await this.#streams.conditions(target);
    return this.#latest;
  }

  /** As they are after this is called. */
  async now(target: ScheduledTarget): Promise<Conditions> {
    this.#latest = await this.#streams.conditions(target, 0);
    return this.#latest;
  }
}
