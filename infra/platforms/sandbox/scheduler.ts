/** The schedulers of facebook and youtube in the sandbox: posts that become visible at their time. */
import type {
  HandedOver,
  HandOverOutcome,
  HandOverRequest,
  NativeScheduler,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  RescheduleOutcome,
  ReviseOutcome,
  UndoOutcome,
  VerifyOutcome,
} from '#contracts/ports/platform.ts';
import { schedulerFailed, schedulerRefused, unknown, versionEnded } from './answers.ts';
import { type Fault, type FaultName, faultsOf } from './faults.ts';
import type { NativePlan } from './line.ts';
import type { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { member } from './prepare.ts';
import { firing, type Script } from './script.ts';

/** Later than any clock of a test: the post stays scheduled. */
const neverMs = 100 * 365 * 86_400_000;

/** Decided before the boundary, like the script of the call. */
export const nativePlan = async (
  network: Network,
  request: PublishRequest,
  faults: readonly Fault[],
  dueAt: string,
  { answer, lateMs }: Script,
): Promise<NativePlan> => {
  const struck = (name: FaultName) => firing(network, request, faults, name);
  const early = await struck('native_early');
  const failed = await struck('native_failed');
  const never = failed ?? (await struck('native_never'));
  const at =
    early === null
      ? Date.parse(dueAt)
      : (await network.now(request.workspaceId)).getTime() + (early.durationMs ?? 1_000);
  return {
    dueAt,
    visibleAt: new Date(never === null ? at : at + neverMs).toISOString(),
    knownAfterMs: answer === 'late' ? lateMs : 0,
    fails: failed !== null,
  };
};

type Created = PublishOutcome | Extract<HandOverOutcome, { readonly kind: 'outside_window' }>;

export class SandboxScheduler implements NativeScheduler {
  readonly #network: Network;
  readonly #options: SandboxOptions;
  readonly #create: (request: HandOverRequest, steps: PublishSteps) => Promise<Created>;

  constructor(
    network: Network,
    options: SandboxOptions,
    create: (request: HandOverRequest, steps: PublishSteps) => Promise<Created>,
  ) {
    this.#network = network;
    this.#options = options;
    this.#create = create;
  }

  async handOver(request: HandOverRequest, steps: PublishSteps): Promise<HandOverOutcome> {
    const made = await this.#create(request, steps);
    if (made.kind === 'accepted') throw new Error('the sandbox looks at no post of its own scheduler');
    return made.kind === 'published' ? { kind: 'handed_over', nativeId: made.externalId } : made;
  }

  async verify(request: HandOverRequest, { boundary, nativeId }: HandedOver): Promise<VerifyOutcome> {
    const { platform, targetId } = request;
    const faults = faultsOf(request.content, request.account.username);
    const key = member(boundary.data, 'key');
    if (key === null) return { kind: 'undecided' };
    try {
      const ended = await this.#network.endedVersion(platform);
      if (ended !== null) return { kind: 'undecided', failure: versionEnded(ended) };
      for (const name of ['unreadable', 'down'] as const) {
        if (await firing(this.#network, request, faults, name)) return { kind: 'undecided' };
      }
      const post = await this.#network.scheduled(platform, targetId, nativeId, key);
      if (post === null) return { kind: 'absent' };
      const { externalId, permalink, visibleAt, state } = post;
      if (state === 'published') {
        return { kind: 'published', externalId, permalink, publishedAt: visibleAt.toISOString() };
      }
      if (state === 'failed') return { kind: 'failed', failure: schedulerFailed() };
      return { kind: 'scheduled', nativeId: externalId };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'undecided' };
      throw error;
    }
  }

  async undo(request: HandOverRequest, nativeId: string): Promise<UndoOutcome> {
    const { platform, targetId } = request;
    const faults = faultsOf(request.content, request.account.username);
    const struck = (name: FaultName) => firing(this.#network, request, faults, name);
    try {
      const ended = await this.#network.endedVersion(platform);
      if (ended !== null) return { kind: 'unknown', failure: versionEnded(ended) };
      if (await struck('down')) return { kind: 'unknown', failure: unknown('503 Service Unavailable') };
      if (await struck('undo_timeout_before')) return { kind: 'unknown', failure: unknown('no answer') };
      const isUndone = await this.#network.undo(platform, targetId, nativeId);
      if (isUndone) this.#options.faultPoint?.('sandbox.post_undone');
      if (await struck('undo_timeout_after')) return { kind: 'unknown', failure: unknown('no answer') };
      if (isUndone) return { kind: 'undone' };
      const post = await this.#network.scheduled(platform, targetId, nativeId, '');
      // An id that the network does not have is answered like one of another account.
      if (post === null) return { kind: 'unknown', failure: unknown('404 Not Found') };
      return { kind: 'too_late', failure: schedulerRefused(platform, 'too_late') };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'unknown', failure: unknown(error.message) };
      throw error;
    }
  }

  async reschedule(request: HandOverRequest, nativeId: string): Promise<RescheduleOutcome> {
    const answer = await this.#change(request, nativeId, null);
    return answer.kind === 'changed' ? { kind: 'rescheduled' } : answer;
  }

  async revise(request: HandOverRequest, nativeId: string, former: PublishRequest): Promise<ReviseOutcome> {
    // Such as a card of a link: it is made with the post.
    if (request.aiDisclosure !== former.aiDisclosure) return { kind: 'other_post' };
    const answer = await this.#change(request, nativeId, request.content);
    return answer.kind === 'changed' ? { kind: 'revised' } : answer;
  }

  /** @param content null: that which it has */
  async #change(
    request: HandOverRequest,
    nativeId: string,
    content: string | null,
  ): Promise<{ readonly kind: 'changed' } | Exclude<RescheduleOutcome, { readonly kind: 'rescheduled' }>> {
    const { platform, targetId, dueAt } = request;
    const faults = faultsOf(request.content, request.account.username);
    const struck = (name: FaultName) => firing(this.#network, request, faults, name);
    try {
      const ended = await this.#network.endedVersion(platform);
      if (ended !== null) return { kind: 'unknown', failure: versionEnded(ended) };
      if (await struck('down')) return { kind: 'unknown', failure: unknown('503 Service Unavailable') };
      if (await struck('undo_timeout_before')) return { kind: 'unknown', failure: unknown('no answer') };
      const changed = await this.#network.change(platform, targetId, nativeId, dueAt, content);
      if (await struck('undo_timeout_after')) return { kind: 'unknown', failure: unknown('no answer') };
      if (changed === 'changed') return { kind: 'changed' };
      const refused = (name: 'outside_window' | 'too_late') => schedulerRefused(platform, name);
      if (changed !== null) return { kind: changed, failure: refused(changed) };
      const post = await this.#network.scheduled(platform, targetId, nativeId, '');
      if (post === null) return { kind: 'unknown', failure: unknown('404 Not Found') };
      // A call whose answer was lost may have had effect.
      const isSo = content !== null && (await this.#network.showsWords(platform, targetId, nativeId, content));
      return isSo ? { kind: 'changed' } : { kind: 'too_late', failure: refused('too_late') };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'unknown', failure: unknown(error.message) };
      throw error;
    }
  }
}
