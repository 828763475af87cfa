/** The steps of a publish before its boundary: containers, sessions and keys. None of them is visible. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Json, PublishOutcome, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { addressUnproven, contentChanged, down, stillProcessing } from './answers.ts';
import type { Fault } from './faults.ts';
import { recordKey, segmentHash } from './ids.ts';
import { imitations } from './imitations.ts';
import type { Looked } from './media.ts';
import type { Container, Network } from './network.ts';
import type { SandboxOptions } from './options.ts';
import { firing, refusalOf } from './script.ts';

/** A string of a checkpoint's data. */
export const member = (data: Json, key: string): string | null => {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return null;
  const value = (data as { readonly [key: string]: Json })[key];
  return typeof value === 'string' ? value : null;
};

/** Prepares a publish. `admitted`: the network has already checked the content in this try. */
export async function prepare(
  network: Network,
  options: SandboxOptions,
  request: PublishRequest,
  steps: PublishSteps,
  faults: readonly Fault[],
  looked: Looked,
): Promise<PublishOutcome | { readonly key: string; readonly admitted: boolean }> {
  const { handle } = rulesOf(request.platform).publish;
  if (await firing(network, request, faults, 'down'))
    return { kind: 'deferred', failure: down('503 Service Unavailable') };
  const { unproven } = imitations[request.platform];
  if (
    unproven !== undefined &&
    request.media.some(({ kind }) => kind === 'image') &&
    (await firing(network, request, faults, 'address_unproven'))
  )
    return { kind: 'deferred', failure: addressUnproven(unproven) };
  const slow = await firing(network, request, faults, 'slow');
  const processingMs = slow === null ? 0 : (slow.durationMs ?? 5000);
  if (handle === 'none' || handle === 'record_key') {
    if (processingMs > 0) await delay(processingMs, undefined, { signal: steps.signal });
    const own = request.thread === null ? request.targetId : `${request.targetId}/${request.thread.index}`;
    const key = handle === 'none' ? `${own}.${request.attempt}` : recordKey(own);
    return { key, admitted: false };
  }

  const known = await knownContainer(network, request, handle);
  if (known !== null && 'kind' in known) return known;
  let container = known;
  if (container === null) {
    const refusal = await refusalOf(network, request, faults, looked);
    if (refusal !== null) return refusal;
    steps.signal.throwIfAborted();
    // A crash before the checkpoint leaves a container that no process knows. It is invisible and expires after a day.
    container = await network.openContainer(request, processingMs);
    options.faultPoint?.('sandbox.container_created');
    await steps.checkpoint(handle, { id: container.id, contentHash: container.contentHash });
    options.faultPoint?.('sandbox.container_checkpointed');
  }
  const until = performance.now() + (options.processingLimitMs ?? 60_000);
  while (container.state === 'in_progress') {
    if (performance.now() > until) return { kind: 'deferred', failure: stillProcessing() };
    await delay(options.pollMs ?? 200, undefined, { signal: steps.signal });
    container = (await network.container(container.id)) ?? container;
  }
  steps.signal.throwIfAborted();
  return { key: container.id, admitted: known === null };
}

/**
 * The container of an earlier try; null where the try must open a new one. If a boundary was crossed with the
 * container, every later try uses it, because only the same container makes a second crossing harmless. If the text has
 * changed since, the try fails, because the container would publish the old text.
 */
async function knownContainer(
  network: Network,
  request: PublishRequest,
  handle: string,
): Promise<Container | PublishOutcome | null> {
  const last = request.checkpoints.findLast(({ step }) => step === handle);
  const id = last === undefined ? null : member(last.data, 'id');
  const container = id === null ? null : await network.container(id);
  if (container === null || container.state === 'expired') return null;
  if (container.contentHash === segmentHash(request)) return container;
  // The container was published already, so the crossing answers with that post.
  if (container.state === 'published') return container;
  const crossed = request.checkpoints.some(({ step, data }) => step === 'boundary' && member(data, 'key') === id);
  return crossed ? { kind: 'failed', failure: contentChanged() } : null;
}
