import { createHmac, randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated Facebook has: people with their consents, pages, files, posts, calls. */

export interface Page {
  readonly id: string;
  readonly name: string;
  readonly username: string | null;
  readonly followers: number;
  /** The account of Instagram behind it; null: none. */
  readonly instagram: { readonly id: string; readonly username: string } | null;
  /** A business that has it, as its own or as a client's; null: none. */
  readonly business: { readonly id: string; readonly isClient: boolean } | null;
}

export interface Person {
  readonly id: string;
  /** Tasks by the page. A page of a business that `listed` lacks is not in the person's own list. */
  readonly tasks: Map<string, readonly string[]>;
  readonly unlisted: Set<string>;
}

export interface Access {
  readonly personId: string;
  /** Null: the token of a login. */
  readonly pageId: string | null;
  readonly scopes: readonly string[];
  readonly isLong: boolean;
  /** Milliseconds of the network's clock; null: no end. */
  readonly until: number | null;
}

export interface Photo {
  readonly kind: 'photo';
  readonly id: string;
  readonly pageId: string;
  readonly bytes: number;
  readonly altText: string | null;
  readonly isTemporary: boolean;
  isUsed: boolean;
}

export type Edge = 'videos' | 'video_reels' | 'video_stories';

export interface Video {
  readonly kind: 'video';
  readonly id: string;
  readonly pageId: string;
  readonly edge: Edge;
  readonly session: string;
  readonly startedAt: number;
  /** Null: not known yet. */
  size: number | null;
  got: number;
  made: Made | null;
  readonly thumbnails: string[];
}

/** How Facebook ends with a video that is finished. */
export type End = 'shown' | 'refused' | 'draft';

/** What a call made, with the time of the call. */
export interface Made {
  readonly id: string;
  readonly pageId: string;
  readonly kind: 'post' | 'story';
  /** Header `x-test-tag` of the call. */
  readonly tag: string | null;
  text: string;
  readonly link: string | null;
  readonly files: readonly (Photo | Video)[];
  readonly calledAt: number;
  /** When it is published; null: it is not, and will not be. */
  publishAt: number | null;
  /** Facebook never publishes it, and says nothing of it. */
  readonly isNever: boolean;
  /** At its time Facebook takes the time away. */
  readonly isFailing: boolean;
  /** Of a video: until when Facebook looks at it, and how that ends. */
  readonly processedAt: number;
  readonly end: End;
  readonly params: Readonly<Record<string, string>>;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /:id/feed`; of the call that ends an upload `POST /:id/video_reels finish`. */
  readonly route: string;
  /** The call's address, its body, or the post that it is about has this; absent: each call. */
  readonly says?: string;
  /** Default 1. */
  readonly times?: number;
  readonly then:
    | { readonly answer: Answer }
    | 'silent_before'
    | 'drop_before'
    | 'silent_after'
    | 'drop_after'
    | { readonly answerAfter: Answer }
    | { readonly lateMs: number; readonly answer: Answer }
    /** `run` is called, and then so: `act` is the network's own answer; with `silent_after` it is called once it is taken. */
    | { readonly run: () => void; readonly then: 'act' | 'silent_before' | 'silent_after' };
}

/** What becomes of the next post whose text has `says`. */
export interface Fate {
  readonly says: string;
  readonly then: 'native_early' | 'native_never' | 'native_failed' | End;
  /** Milliseconds. */
  readonly ms: number;
}

export interface FacebookOptions {
  readonly redirectUri?: string;
  readonly clientSecret?: string;
}

const hourMs = 3_600_000;

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; redirectUri: string };
  readonly version = 'v27.0';
  readonly people = new Map<string, Person>();
  readonly pages = new Map<string, Page>();
  readonly access = new Map<string, Access>();
  readonly codes = new Map<
    string,
    { readonly personId: string; readonly scopes: readonly string[]; readonly until: number }
  >();
  readonly photos = new Map<string, Photo>();
  readonly videos = new Map<string, Video>();
  readonly made: Made[] = [];
  readonly comments: {
    readonly id: string;
    readonly postId: string;
    readonly tag: string | null;
    readonly text: string;
  }[] = [];
  readonly deleted = new Set<string>();
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  readonly fates: Fate[] = [];
  /** Metrics that Facebook has retired. */
  readonly retired = new Set<string>(['page_video_views', 'page_video_view_time', 'total_video_consumption_rate']);
  /** Pages that may set no picture of a video. */
  readonly coverless = new Set<string>();
  /** Bytes of a part that it asks for. */
  partBytes = 1_048_576;
  /** Posts on a page of a list, whatever it is asked for. */
  maxPage = Number.POSITIVE_INFINITY;
  /** Tokens of pages that were minted, by the page. */
  readonly minted = new Map<string, number>();
  #ahead = 0;
  #next = 0n;

  constructor({
    redirectUri = 'https://postline.test/connect/callback',
    clientSecret = 'app-secret',
  }: FacebookOptions) {
    this.app = { clientId: '1029384756', clientSecret, redirectUri };
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  /** Beyond 2^53. */
  id(): string {
    this.#next += 1n;
    return String(122_100_000_000_000_000n + this.#next);
  }

  token(): string {
    return `EAAG${randomBytes(24).toString('base64url')}`;
  }

  grant(personId: string, scopes: readonly string[], isLong: boolean): string {
    const token = this.token();
    const until = this.now() + (isLong ? 60 * 24 * hourMs : 2 * hourMs);
    this.access.set(token, { personId, pageId: null, scopes, isLong, until });
    return token;
  }

  /** Of a page: one minted by a token that lasts has no end. */
  grantPage(from: Access, pageId: string): string {
    const token = this.token();
    this.access.set(token, { ...from, pageId, until: from.isLong ? null : from.until });
    return token;
  }

  proofOf(token: string): string {
    return createHmac('sha256', this.app.clientSecret).update(token).digest('hex');
  }

  isOut({ publishAt, isNever, isFailing, processedAt, end, id }: Made): boolean {
    const now = this.now();
    const isReady = end === 'shown' && processedAt <= now;
    return publishAt !== null && publishAt <= now && !isNever && !isFailing && isReady && !this.deleted.has(id);
  }

  /** Id by which a list has it. */
  idOf({ kind, id, pageId }: Made): string {
    return kind === 'story' ? id : `${pageId}_${id}`;
  }

  find(id: string): Made | null {
    return this.made.find((one) => this.idOf(one) === id && !this.deleted.has(one.id)) ?? null;
  }

  fateOf(text: string): Fate | null {
    return this.fates.find(({ says }) => text.includes(says)) ?? null;
  }

  /** The fault that this call meets; it is spent. */
  met(route: string, said: string): Fault['then'] | null {
    const fault = this.faults.find(
      (one) => one.left > 0 && one.route === route && (one.says === undefined || said.includes(one.says)),
    );
    if (fault === undefined) return null;
    fault.left -= 1;
    return fault.then;
  }
}
