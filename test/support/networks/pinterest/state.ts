import { randomBytes } from 'node:crypto';
import type { Answer } from './answer.ts';

/** What the simulated Pinterest has: people, boards, consents, pins, uploads, calls. */

export interface Person {
  readonly id: string;
  readonly username: string;
  readonly businessName: string | null;
  readonly accountType: 'PINNER' | 'BUSINESS';
}

export interface Board {
  readonly id: string;
  readonly name: string;
  readonly privacy: 'PUBLIC' | 'PROTECTED' | 'SECRET';
  readonly ownerId: string;
  /** People who may pin to it beside its owner. */
  readonly collaborators: readonly string[];
  readonly at: number;
}

export interface Access {
  readonly personId: string;
  readonly scopes: readonly string[];
  /** All tokens of one consent: a refresh token that is used twice ends them. */
  readonly family: string;
  /** Milliseconds of the network's clock. */
  readonly until: number;
}

export interface Pin {
  readonly id: string;
  readonly personId: string;
  readonly boardId: string;
  /** As it was sent. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly kind: 'image' | 'multiple_images' | 'video';
  /** Pictures that Pinterest has of it, in their order; of a video its cover. */
  readonly pictures: readonly Buffer[];
  readonly mediaId: string | null;
  readonly at: number;
}

export interface Upload {
  readonly id: string;
  readonly personId: string;
  readonly key: string;
  readonly policy: string;
  readonly signature: string;
  /** The storage takes the file until then. */
  readonly until: number;
  /** Bytes received, repeats included. */
  received: number;
  /** The beginning of what is there; null: nothing. */
  head: Buffer | null;
  bytes: number;
  /** Looks that still show `processing`. */
  looks: number;
}

/** A call that asked for a pin. */
export interface CreateEntry {
  readonly personId: string | null;
  /** Header `x-test-tag` of the call. */
  readonly tag: string | null;
  readonly body: unknown;
  readonly status: number;
  readonly pinId: string | null;
}

export interface CallEntry {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly personId: string | null;
  readonly status: number;
}

/** What a call meets instead of the network's own answer. */
export interface Fault {
  /** `POST /v5/pins`; the path's ids are written `:id`. */
  readonly route: string;
  /** The call's address or body has this; absent: each call. */
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

export type Category = 'org_read' | 'org_write' | 'org_analytics';

/** Calls in a window: by the minute of a person with standard access, by the day of the app with trial access. */
export type Limits = Readonly<Record<Category, number>>;
const minuteLimits: Limits = { org_read: 1_000, org_write: 100, org_analytics: 60 };
const dayLimits: Limits = { org_read: 1_000, org_write: 300, org_analytics: 1_000 };

export interface PinterestOptions {
  readonly limits?: Partial<Limits>;
  readonly tier?: 'standard' | 'trial';
  readonly redirectUri?: string;
  /** Trial access refuses pins; older apps were seen to make pins that their creator alone sees. */
  readonly trialRefuses?: boolean;
}

export class State {
  readonly app: { readonly clientId: string; readonly clientSecret: string; readonly redirectUri: string };
  readonly tier: 'standard' | 'trial';
  readonly trialRefuses: boolean;
  readonly limits: Limits;
  /** Looks that a new upload shows as `processing`. */
  processingLooks = 2;
  readonly people = new Map<string, Person>();
  readonly boards = new Map<string, Board>();
  readonly access = new Map<string, Access>();
  /** Refresh tokens that still work. */
  readonly refresh = new Map<string, Access>();
  /** Families of refresh tokens that were used. */
  readonly used = new Map<string, string>();
  readonly codes = new Map<string, Omit<Access, 'family'>>();
  readonly pins: Pin[] = [];
  readonly deleted = new Set<string>();
  readonly uploads = new Map<string, Upload>();
  readonly creates: CreateEntry[] = [];
  readonly calls: CallEntry[] = [];
  readonly faults: (Fault & { left: number })[] = [];
  readonly counts = new Map<string, { used: number; reset: number }>();
  /** Pictures that anybody can fetch, by their address. */
  readonly web = new Map<string, Buffer>();
  /** What the published contract refuses of a call or of an answer. */
  readonly violations: string[] = [];
  #ahead = 0;
  #next = 0n;

  constructor({ limits, tier = 'standard', trialRefuses = true, redirectUri }: PinterestOptions) {
    const uri = redirectUri ?? 'https://postline.test/connect/callback';
    this.app = { clientId: '1480000', clientSecret: 'app:secret', redirectUri: uri };
    this.tier = tier;
    this.trialRefuses = trialRefuses;
    this.limits = { ...(tier === 'trial' ? dayLimits : minuteLimits), ...limits };
  }

  now(): number {
    return Date.now() + this.#ahead;
  }

  advance(ms: number): void {
    this.#ahead += ms;
  }

  id(): string {
    this.#next += 1n;
    return String(813_744_226_420_000_000n + this.#next);
  }

  token(kind: string): string {
    return `${kind}_${randomBytes(24).toString('base64url')}`;
  }

  grant(personId: string, scopes: readonly string[], family = this.token('family')) {
    const [accessToken, refreshToken] = [this.token('pina'), this.token('pinr')];
    this.access.set(accessToken, { personId, scopes, family, until: this.now() + 30 * 86_400_000 });
    this.refresh.set(refreshToken, { personId, scopes, family, until: this.now() + 60 * 86_400_000 });
    return { accessToken, refreshToken };
  }

  endFamily(family: string): void {
    for (const tokens of [this.access, this.refresh]) {
      for (const [token, one] of tokens) if (one.family === family) tokens.delete(token);
    }
  }

  pin(id: string): Pin | null {
    return this.deleted.has(id) ? null : (this.pins.find((one) => one.id === id) ?? null);
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
