import { createHash } from 'node:crypto';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { type RecordedEvent, streamPages } from '#contracts/ports/event-store.ts';
import { filesOf, isDeleted, media } from '#domain/media.ts';
import { contentHashOf } from '#domain/post/content.ts';
import { newestBody, post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import type { FeedRow } from '#projections/feed/read.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { asFacts, foldEvents } from '#runtime/eventing/domain-store.ts';
import type { PostEvent } from '#schemas/post.ts';
import { kindOf } from '#schemas/topics.ts';
import { DeliveryChecks } from './audit-deliveries.ts';
import type { ChecksOptions } from './audit-findings.ts';
import { RowChecks } from './audit-rows.ts';
import type { Admin } from './context.ts';

/** What is held against each stream once its last event was read: rows, boundaries, approvals, deliveries and files. */

/** Bytes of events that wait for the end of their streams. */
const maxWaitingBytes = 48 * 1_024 * 1_024;
/** Hashes of files that one verification remembers. */
const maxHashes = 20_000;
const maxEnds = 50_000;
const pageEvents = 500;

interface Open {
  readonly events: RecordedEvent[];
  bytes: number;
}

/** `null`: the whole stream could not be decoded. */
type Whole = readonly DecodedEvent[] | null;

export interface KeptFile {
  readonly key: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The files of an asset that is in the library, each with the hash that was taken when it was stored. */
export const keptFilesOf = (events: readonly DecodedEvent[]): readonly KeptFile[] => {
  const state = foldEvents(media, events);
  if (isDeleted(state) || (state.status !== 'transcoding' && state.status !== 'transcoded')) return [];
  const kept = new Set(filesOf(state).map(({ key }) => key));
  const found = new Map<string, KeptFile>();
  for (const { data } of events) {
    for (const one of [data, data.poster]) {
      const { key, contentType, bytes, sha256 } = (one ?? {}) as Partial<KeptFile>;
      if (key === undefined || sha256 === undefined || !kept.has(key)) continue;
      found.set(key, { key, contentType: contentType ?? '', bytes: bytes ?? 0, sha256 });
    }
  }
  return [...found.values()];
};

export class StreamChecks {
  readonly #admin: Admin;
  readonly #options: ChecksOptions;
  /** Streams whose last event was not read yet, the oldest first. */
  readonly #open = new Map<string, Open>();
  #bytes = 0;
  readonly #rows: RowChecks;
  readonly #deliveries: DeliveryChecks;
  /** Last revision of a stream within the verified part of the feed. */
  readonly #ends = new BoundedMap<string, bigint>(maxEnds);
  readonly #hashes = new BoundedMap<string, string | null>(maxHashes);

  private constructor(admin: Admin, options: ChecksOptions, rows: RowChecks, deliveries: DeliveryChecks) {
    this.#admin = admin;
    this.#options = options;
    this.#rows = rows;
    this.#deliveries = deliveries;
  }

  static async begin(admin: Admin, options: ChecksOptions): Promise<StreamChecks> {
    return new StreamChecks(
      admin,
      options,
      await RowChecks.begin(admin, options),
      await DeliveryChecks.begin(admin, options),
    );
  }

  async add(page: readonly { readonly row: FeedRow; readonly event: RecordedEvent }[]): Promise<void> {
    await this.#loadEnds(page.map(({ row }) => row.stream));
    const over: { readonly stream: string; readonly events: readonly RecordedEvent[] | null }[] = [];
    for (const { event } of page) {
      const { stream, revision } = event;
      let open = this.#open.get(stream);
      if (open === undefined && revision === 0n) {
        open = { events: [], bytes: 0 };
        this.#open.set(stream, open);
      }
      if (open !== undefined) {
        const bytes = event.data.length + event.metadata.length;
        open.events.push(event);
        open.bytes += bytes;
        this.#bytes += bytes;
      }
      if (revision !== this.#ends.get(stream)) continue;
      this.#forget(stream);
      const isWhole = open !== undefined && BigInt(open.events.length) === revision + 1n;
      over.push({ stream, events: isWhole && open !== undefined ? open.events : null });
    }
    for (const stream of this.#open.keys()) {
      if (this.#bytes <= maxWaitingBytes) break;
      this.#forget(stream);
    }
    for (const { stream, events } of over) await this.#check(stream, events);
  }

  #forget(stream: string): void {
    this.#bytes -= this.#open.get(stream)?.bytes ?? 0;
    this.#open.delete(stream);
  }

  async #loadEnds(streams: readonly string[]): Promise<void> {
    const unknown = [...new Set(streams)].filter((stream) => !this.#ends.has(stream));
    if (unknown.length === 0) return;
    const { rows } = await this.#admin.pool.query<{ stream: string; last: string }>({
      name: 'audit-ends',
      text: `select s.stream, e.revision as last from unnest($1::text[]) as s (stream) cross join lateral (
          select revision from ops.feed_events e
          -- The sum keeps Postgres on the index of streams: that of a workspace would be walked from its end.
          where e.stream = s.stream and e.sequence + 0 <= $2 order by revision desc limit 1
        ) e`,
      values: [unknown, this.#options.size],
    });
    for (const { stream, last } of rows) this.#ends.set(stream, BigInt(last));
  }

  /** A stream that has a part of its events alone in memory is read again, as a resumed verification does. */
  async #whole(stream: string): Promise<readonly RecordedEvent[]> {
    const all: RecordedEvent[] = [];
    for await (const page of streamPages(this.#admin.eventStore, stream, pageEvents)) all.push(...page);
    return all;
  }

  async #decoded(stream: string, events: readonly RecordedEvent[]): Promise<Whole> {
    try {
      return await this.#admin.codec.decodeAll(events);
    } catch (error) {
      this.#options.say(`${stream} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  }

  async #check(stream: string, held: readonly RecordedEvent[] | null): Promise<void> {
    const kind = kindOf(stream);
    if (!this.#isChecked(kind)) return;
    const recorded = held ?? (await this.#whole(stream));
    // A rule of retention dropped its first events: what is left makes no state.
    if (recorded[0]?.revision !== 0n) return;
    const events = await this.#decoded(stream, recorded);
    if (events === null) return;
    this.#count('streams');
    await this.#rows.add(stream, events);
    await this.#deliveries.add(events);
    if (kind === 'target') this.#boundaries(stream, events);
    if (kind === 'post') await this.#releases(events);
    if (kind === 'media') await this.#files(stream, events);
  }

  #isChecked(kind: string): boolean {
    return this.#rows.covers(kind) || this.#deliveries.covers(kind);
  }

  #count(what: string, by = 1): void {
    const { counted } = this.#options;
    counted[what] = (counted[what] ?? 0) + by;
  }

  /** Of a thread each segment has a call of its own. */
  #boundaries(stream: string, events: readonly DecodedEvent[]): void {
    const seen = new Set<string>();
    for (const { type, data, revision } of events) {
      if (type !== 'TargetPublishCheckpointed' || data.step !== 'boundary') continue;
      this.#count('boundaries');
      const index = (data.segment as { readonly index: number } | undefined)?.index ?? 0;
      const call = `${String(data.attempt)}/${index}`;
      if (seen.has(call))
        this.#options.say(
          `${stream} crossed the boundary of attempt ${String(data.attempt)} a second time, at revision ${revision}`,
        );
      seen.add(call);
    }
  }

  /** What of a post was asked for approval went out only released, and with the content that was released. */
  async #releases(events: readonly DecodedEvent[]): Promise<void> {
    const requests = asFacts<PostEvent>(events).flatMap(({ event }, at) =>
      event.type === 'PostSubmittedForApproval' ? [{ ...event.data, position: events[at]?.position ?? 0n }] : [],
    );
    for (const targetId of new Set(requests.flatMap(({ targetIds }) => targetIds))) {
      const stream = `target-${targetId}`;
      const sent = await this.#decoded(stream, await this.#whole(stream));
      for (const [at, event] of (sent ?? []).entries()) {
        if (sent === null || event.type !== 'TargetPublishCheckpointed' || event.data.step !== 'boundary') continue;
        const request = requests.findLast((one) => one.targetIds.includes(targetId) && one.position < event.position);
        if (request === undefined) continue;
        this.#count('releases');
        const named = `${stream} was sent at revision ${event.revision}`;
        const release = events.find(
          ({ type, data, position }) =>
            type === 'PostReleased' && data.approvalId === request.approvalId && position < event.position,
        );
        if (release === undefined)
          this.#options.say(`${named}, and approval ${request.approvalId} had not released it`);
        else if (!(await this.#isApproved(request.approvalId, release.position)))
          this.#options.say(`${named}, and nobody had approved ${request.approvalId}, which released it`);
        const state = foldEvents(target, sent.slice(0, at));
        const revision = state.status === 'none' ? 0 : state.common.postRevision;
        if ((await this.#contentAt(events, revision)) !== request.hash)
          this.#options.say(`${named} with content that approval ${request.approvalId} was not asked for`);
      }
    }
  }

  async #isApproved(approvalId: string, before: bigint): Promise<boolean> {
    const events = await this.#whole(`approval-${approvalId}`);
    return events.some(({ type, position }) => type === 'ApprovalApproved' && position < before);
  }

  /** The hash of what the post said at that revision, counted again from its events and its files. */
  async #contentAt(events: readonly DecodedEvent[], revision: number): Promise<string | null> {
    const state = foldEvents(
      post,
      events.filter((one) => one.revision <= revision),
    );
    if (state.status !== 'live') return null;
    const body = newestBody(state);
    const ids: string[] = [];
    contentHashOf(body, state.plan.targets, (id) => {
      ids.push(id);
      return null;
    });
    const hashes = new Map<string, string | null>();
    for (const id of ids) hashes.set(id, await this.#hashOf(id));
    return contentHashOf(body, state.plan.targets, (id) => hashes.get(id) ?? null);
  }

  async #hashOf(mediaId: string): Promise<string | null> {
    const known = this.#hashes.get(mediaId);
    if (known !== undefined) return known;
    const stored = (await this.#whole(`media-${mediaId}`)).find(({ type }) => type === 'MediaStored');
    const found = stored === undefined ? null : String(JSON.parse(Buffer.from(stored.data).toString()).sha256);
    this.#hashes.set(mediaId, found);
    return found;
  }

  /** Files of an asset that is in the library lie where its events say, with the bytes that were hashed then. */
  async #files(stream: string, events: readonly DecodedEvent[]): Promise<void> {
    for (const { key, sha256 } of keptFilesOf(events)) {
      this.#count('files');
      const found = await this.#bytesAt(key);
      if (found === null) this.#options.say(`the file ${key} of ${stream} is not there`);
      else if (found !== sha256) this.#options.say(`the file ${key} of ${stream} is not the one that was stored`);
    }
  }

  /** SHA-256 of what lies there; null: nothing does. */
  async #bytesAt(key: string): Promise<string | null> {
    const { blobs, signal } = this.#admin;
    try {
      const { body } = await blobs.get(key, { signal });
      const hash = createHash('sha256');
      for await (const chunk of body) hash.update(chunk as Uint8Array);
      return hash.digest('hex');
    } catch (error) {
      if (error instanceof BlobError && error.code === 'not_found') return null;
      throw error;
    }
  }

  /** Compares what waits to be compared together. */
  async flush(): Promise<void> {
    await this.#rows.flush();
    await this.#deliveries.flush();
  }

  /** After the last page. */
  async end(): Promise<void> {
    await this.flush();
    await this.#deliveries.end();
  }
}
