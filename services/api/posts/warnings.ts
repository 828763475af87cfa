import { within } from '#contracts/base/within.ts';
import {
  type ComposedTarget,
  type ComposedWarning,
  composedWarnings,
  timeWarnings,
  unusedAltTexts,
} from '#domain/composed-warnings.ts';
import { newestBody, type PostState } from '#domain/post.ts';
import type { BodyNotes } from '#schemas/http/clean.ts';
import type { Warning } from '#schemas/http/common.ts';
import type { PostBody } from '#schemas/post.ts';
import { allOf, type Checked, checksOf, slowToCount } from '#services/workflows/posts/compose.ts';
import type { Call } from '../operation.ts';
import { composingOf } from './checks.ts';
import { select } from './destinations.ts';
import { foresee } from './foresee.ts';
import type { Reads } from './reads.ts';

/** What the answer to a command on a post warns of: all that a preview of it would. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'behind' | 'now' | 'correlationId'>;

/** How long an answer waits for what warnings read, milliseconds; then it goes without them. */
const patienceMs = 500;

const ofNetworks = (foreseen: Awaited<ReturnType<typeof foresee>>): readonly ComposedWarning[] =>
  foreseen.flatMap(({ destination: { platform }, target, warnings }) =>
    warnings.map((one) => ({ ...one, platform, accountId: target?.accountId ?? null })),
  );

/** Warnings that differ in their account alone are one, which names what they have in common. */
const folded = (all: readonly ComposedWarning[]): readonly ComposedWarning[] => {
  const key = ({ code, path, message, mediaId, postId }: ComposedWarning) =>
    JSON.stringify([code, path, message, mediaId, postId]);
  const only = <T>(values: readonly T[]): T | null => {
    const [first, ...more] = new Set(values);
    return first === undefined || more.length > 0 ? null : first;
  };
  return [...Map.groupBy(all, key).values()].flatMap((some) => {
    const [first] = some;
    if (first === undefined) return [];
    const [platform, accountId] = [only(some.map((one) => one.platform)), only(some.map((one) => one.accountId))];
    const many = new Set(some.map((one) => one.accountId)).size;
    const message = many > 1 ? `${first.message} (${many} accounts)` : first.message;
    return [{ ...first, message, platform, accountId }];
  });
};

const shown = (id: string, base: string, { path, ...one }: ComposedWarning): Warning => {
  const { code, message, willFail } = one;
  const { platform, accountId, mediaId, postId } = one;
  return {
    ...{ code, id, message },
    ...(path === '' ? {} : { path: `${base}${path}` }),
    ...(platform === null ? {} : { platform }),
    ...(accountId === null ? {} : { accountId }),
    ...(willFail ? { willFail } : {}),
    ...(mediaId === null ? {} : { mediaId }),
    ...(postId === null ? {} : { postId }),
  };
};

export interface WarnedPost {
  readonly id: string;
  readonly state: PostState;
  /** What this call sent of alt texts: the post keeps those of its own files. */
  readonly sent?: Pick<PostBody, 'mediaAltTexts'> | { readonly mediaAltTexts?: Readonly<Record<string, string>> };
  readonly notes: BodyNotes;
  /** Targets to which the command gave content or times. Absent: those of the plan. */
  readonly targets?: readonly ComposedTarget[];
  /** False: the targets keep their times. */
  readonly isTimed?: boolean;
  readonly replayed?: boolean;
}

/** The warnings of one command on one post. */
export class PostWarnings {
  readonly #call: Asking;
  #checked: Checked | null = null;
  #moment: Promise<readonly ComposedWarning[]> = Promise.resolve([]);

  constructor(call: Asking) {
    this.#call = call;
  }

  /**
   * Begins to read what the post meets at this moment, once its checks have passed: beside the append, because after it
   * the read models may know the post. Nothing that is read here can refuse the command. A body whose texts are slow to
   * count is counted once, by the checks.
   */
  begin(postId: string, body: PostBody, checked: Checked): void {
    this.#checked = checked;
    if (checked.bytes > slowToCount) return;
    this.#moment = this.#read(async () =>
      ofNetworks(await foresee(this.#call, body, checked, { postId, waits: false })),
    );
  }

  /** Of a draft, whose targets are not known: those that it would have now. */
  beginDraft(postId: string, clientId: string, body: PostBody, reads: Reads): void {
    if (JSON.stringify(body).length > slowToCount) return;
    const composed = { id: postId, clientId, body, planNumber: 1, choose: select };
    this.#moment = this.#read(async () => {
      const { found } = await allOf(checksOf(composingOf(this.#call), reads, composed));
      if (found === null) return [];
      this.#checked = found;
      return ofNetworks(await foresee(this.#call, body, found, { postId, waits: false }));
    });
  }

  #read(read: () => Promise<readonly ComposedWarning[]>): Promise<readonly ComposedWarning[]> {
    const { deps, correlationId } = this.#call;
    return within(patienceMs, read(), () => []).catch((err: unknown) => {
      deps.logger.warn({ err, correlationId }, 'the warnings of a post could not be read');
      return [];
    });
  }

  /** @param base pointer to the post in the body of the call */
  async of(post: WarnedPost, base = ''): Promise<readonly Warning[]> {
    const { id, state, sent, notes, isTimed = true, replayed = false } = post;
    if (state.status === 'none') return [];
    const moment = replayed ? [] : await this.#moment;
    const checked = replayed ? null : this.#checked;
    // What the command wrote, also where it waits for an approval.
    const body = newestBody(state);
    const planned = state.status === 'live' ? state.plan.targets : (checked?.plan.targets ?? null);
    const targets = post.targets ?? planned;
    const isHeld = state.status === 'live' ? state.planHeld : (checked?.isHeld ?? null);
    const zone = notes.given.has('timezone') ? 'sent' : 'stored';
    const composed = composedWarnings(body, { targets, isHeld, zone }).filter(
      ({ code }) => isTimed || !timeWarnings.includes(code),
    );
    const unused = sent === undefined ? [] : unusedAltTexts(sent.mediaAltTexts, body);
    return folded([...moment, ...composed, ...unused]).map((one) => shown(id, base, one));
  }
}
