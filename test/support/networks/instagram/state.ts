import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated Instagram has: accounts, pages behind which they are, consents, containers, media, comments, calls. */

/** `ig`: graph.instagram.com; `fb`: graph.facebook.com. */
export type Host = 'ig' | 'fb';

export interface Person {
  /** Of the professional account, in paths. */
  readonly id: string;
  /** Of the person, for the app of Instagram alone. */
  readonly scopedId: string;
  readonly username: string;
  readonly accountType: 'BUSINESS' | 'MEDIA_CREATOR' | 'PERSONAL';
  readonly followers: number;
}

/** A page of Facebook, and the account of Instagram that is linked to it. */
export interface Page {
  readonly id: string;
  readonly name: string;
  readonly account: Person | null;
}

/** Somebody with a login of Facebook. */
export interface Holder {
  readonly id: string;
  /** Listed by `/me/accounts`. */
  readonly pages: readonly Page[];
  /** By `/{business}/owned_pages` and `/{business}/client_pages`. */
  readonly businesses: readonly {
    readonly id: string;
    readonly owned: readonly Page[];
    readonly client: readonly Page[];
  }[];
}

export interface Access {
  readonly host: Host;
  /** The account that it acts for; null: a token of a login of Facebook. */
  readonly personId: string | null;
  readonly holderId: string | null;
  readonly scopes: readonly string[];
  readonly isLong: boolean;
  /** Milliseconds of the network's clock; null: no end. */
  readonly from: number;
  readonly until: number | null;
}

/** A file as Instagram fetched it from its address. */
export interface Fetched {
  readonly type: 'IMAGE' | 'VIDEO';
  readonly address: string;
  readonly altText: string | null;
}

export type Type = 'IMAGE' | 'VIDEO' | 'REELS' | 'STORIES' | 'CAROUSEL';

export interface Container {
  readonly id: string;
  readonly personId: string;
  readonly type: Type;
  readonly params: Readonly<Record<string, string>>;
  readonly isChild: boolean;
  readonly children: readonly Container[];
  readonly at: number;
  file: Fetched | null;
  /** Looks that still show it in progress. */
  looks: number;
  status: 'IN_PROGRESS' | 'FINISHED' | 'PUBLISHED' | 'ERROR' | 'EXPIRED';
  /** Subcode. */
  error: number | null;
  /** Calls that still do not find it, whatever its status. */
  hidden: number;
}

export interface Media {
  readonly id: string;
  readonly personId: string;
  readonly code: string;
  readonly container: Container;
  readonly caption: string;
  readonly files: readonly Fetched[];
  readonly at: number;
}

export interface Comment {
  readonly id: string;
  readonly mediaId: string;
  readonly text: string;
  /** Header `x-test-tag` of the call. */
  readonly tag: string | null;
}

/** A call that asked for a container to be published. */
export interface PublishEntry {
  readonly tag: string | null;
  readonly containerId: string;
  readonly status: number;
  readonly mediaId: string | null;
}

export interface CallEntry {
  readonly host: Host | null;
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /:id/media`. */
  readonly route: string;
  /** The call's address or body has this, or the caption of the container that it names; absent: each call. */
  readonly says?: string;
  /** Default 1. */
  readonly times?: number;
  readonly then:
    | { readonly answer: Answer }
    /** Not taken, and no answer (`silent`) or a closed connection (`drop`). */
    | 'silent_before'
    | 'drop_before'
    /** Taken, and then so. */
    | 'silent_after'
    | 'drop_after'
    | { readonly answerAfter: Answer }
    /** Answered so at once, and taken later. */
    | { readonly lateMs: number; readonly answer: Answer }
    /** `run` is called, and then so: `act` is the network's own answer; with `silent_after` it is called once it is taken. */
    | { readonly run: () => void; readonly then: 'act' | 'silent_before' | 'silent_after' };
}

export interface InstagramNetworkOptions {
  readonly redirectUri?: string;
  /** Posts in a moving day. */
  readonly quota?: number;
}

const dayMs = 86_400_000;

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string };
  /** The Meta app, for Facebook Login. */
  readonly metaApp = { clientId: '1234567890123456', clientSecret: 'meta-app-secret' };
  quota: number;
  /** Looks that show a container of this type in progress. */
  readonly processing: Record<Type, number> = { IMAGE: 0, VIDEO: 1, REELS: 2, STORIES: 1, CAROUSEL: 1 };
  /** What the next containers of a type end with instead of FINISHED. */
  readonly breaks: { type: Type; error: number }[] = [];
  /** Calls that do not find a container although it is finished: of the next ones made. */
  hidesContainers: number[] = [];
  /** Media that a call by their id does not find, though the lists have them. */
  readonly hiddenMedia = new Set<string>();
  /** Milliseconds by which the lists are behind. */
  listLagMs = 0;
  /** Media on a page of a list, whatever it is asked for. */
  maxPage = Number.POSITIVE_INFINITY;
  /** Accounts on whose behalf nobody may label a partnership, tag or invite: unknown usernames. */
  readonly unknownNames = new Set<string>();
  readonly people = new Map<string, Person>();
  readonly holders = new Map<string, Holder>();
  readonly access = new Map<string, Access>();
  readonly codes = new Map<
    string,
    { readonly host: Host; readonly who: string; readonly scopes: readonly string[]; readonly until: number }
  >();
  readonly containers = new Map<string, Container>();
  readonly media: Media[] = [];
  readonly comments: Comment[] = [];
  readonly deleted = new Set<string>();
  readonly publishes: PublishEntry[] = [];
  readonly calls: CallEntry[] = [];
  /** Addresses that Instagram has fetched, in their order. */
  readonly fetched: string[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  #ahead = 0;
  #next = 0n;

  constructor({ redirectUri = 'https://postline.test/connect/callback', quota = 50 }: InstagramNetworkOptions) {
    this.app = { clientId: '990602627938098', clientSecret: 'instagram-app-secret', redirectUri };
    this.quota = quota;
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
    return String(17_900_000_000_000_000n + this.#next);
  }

  token(): string {
    return `IGAA${randomBytes(24).toString('base64url')}`;
  }

  grant(access: Omit<Access, 'from' | 'until'>, seconds: number | null): string {
    const token = this.token();
    const from = this.now();
    this.access.set(token, { ...access, from, until: seconds === null ? null : from + seconds * 1_000 });
    return token;
  }

  post(id: string): Media | null {
    return this.deleted.has(id) ? null : (this.media.find((one) => one.id === id) ?? null);
  }

  isStory({ container: { type } }: Media): boolean {
    return type === 'STORIES';
  }

  /** A story is there for 24 hours. */
  isShown(one: Media): boolean {
    return !this.deleted.has(one.id) && (!this.isStory(one) || this.now() - one.at < dayMs);
  }

  /** Of the last 24 hours. */
  used(personId: string): number {
    const from = this.now() - dayMs;
    return this.media.filter((one) => one.personId === personId && one.at > from).length;
  }

  pageOf(id: string): Page | null {
    for (const { pages, businesses } of this.holders.values()) {
      const all = [...pages, ...businesses.flatMap(({ owned, client }) => [...owned, ...client])];
      const found = all.find((one) => one.id === id);
      if (found !== undefined) return found;
    }
    return null;
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
