import { setTimeout as delay } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { claimWorkspace, nextStepMs, releaseWorkspace } from './job-schedule.ts';
import { type Job, JobSteps, type Step, type StepDeps } from './job-steps.ts';

/**
 * Jobs read ranges of the store once more for one endpoint: the catch-up behind every interval, replays, and the
 * deletion of a deleted endpoint's deliveries. Workspaces take turns, and so do the jobs of one workspace. A step reads
 * a page, mints it and moves the job's cursor in one transaction that locks the job's row: a crash undoes the step, and
 * no two processes do it at once.
 */

export interface JobsDeps extends StepDeps {
  readonly logger: Logger;
}

/** Between two searches for a job, which also find jobs that another process made or failed at. */
const minRestMs = 250;
const maxRestMs = 3_000;
/** Rest after the second failed step in a row: the fault is then not the job's own. */
const failedRestMs = 1_000;
/** How long a failed job lets the others pass. */
const passMs = 2_000;
const brokenPassMs = 5_000;
/** How long a workspace waits whose due jobs another process works on. */
const busyMs = 250;

export class WebhookJobs {
  readonly #deps: JobsDeps;
  readonly #steps: JobSteps;
  #wake: (() => void) | null = null;
  #woken = false;
  #restMs = minRestMs;
  #failures = 0;

  constructor(deps: JobsDeps) {
    this.#deps = deps;
    this.#steps = new JobSteps(deps);
  }

  /** Call it when a new job exists. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#deps;
    while (!signal.aborted) {
      try {
        const found = await this.#runStep();
        this.#failures = 0;
        if (found) continue;
      } catch (error) {
        if (signal.aborted) return;
        const log = isInfrastructureFault(error) ? logger.warn : logger.error;
        log.call(logger, { err: error }, 'a webhook job could not go on');
        this.#failures += 1;
        // One job alone may fail for ever: the jobs of others do not wait for it.
        if (this.#failures === 1) continue;
        this.#woken = false;
        this.#restMs = failedRestMs;
      }
      await this.#rest(signal);
    }
  }

  async #rest(signal: AbortSignal): Promise<void> {
    if (!this.#woken) {
      const over = new AbortController();
      const until = AbortSignal.any([signal, over.signal]);
      this.#wake = () => over.abort();
      await delay(this.#restMs, undefined, { signal: until }).catch(() => undefined);
      this.#wake = null;
    }
    this.#woken = false;
  }

  /** Runs one step of the workspace that has waited longest; false when none is due. */
  async #runStep(): Promise<boolean> {
    const { pool } = this.#deps;
    // This query runs all the time, so it is one statement. Rests until the next known step is due.
    const ms = (await nextStepMs(pool)) ?? maxRestMs;
    this.#restMs = Math.min(Math.max(ms, minRestMs), maxRestMs);
    const workspace = ms > 0 ? null : await claimWorkspace(pool);
    if (workspace === null) return false;
    let found = true;
    try {
      found = await this.#step(workspace.workspaceId);
    } finally {
      // After the commit, and on its own: a transaction that writes jobs holds the row until its commit, and may wait
      // for this one.
      await releaseWorkspace(pool, workspace, found ? 0 : busyMs);
    }
    return true;
  }

  /** False when no job of the workspace is due, or other processes work on them. */
  async #step(workspaceId: string): Promise<boolean> {
    let step: Step | null = null;
    let job: Job | null = null;
    try {
      const found = await inTransaction(this.#deps.pool, async (tx) => {
        job = await nextJob(tx, workspaceId);
        if (job === null) return { commit: false, result: false };
        step = await this.#steps.step(tx, job);
        await tx.query(
          `update ops.webhook_jobs set
             not_before = clock_timestamp() + coalesce($2::float8, 0) * interval '1 millisecond',
             status = case when $2::float8 is null then 'completed' else status end,
             completed_at = case when $2::float8 is null then clock_timestamp() end,
             updated_at = clock_timestamp()
           where id = $1`,
          [job.id, step.next],
        );
        faultPoint('webhook-jobs:before-commit');
        return { commit: true, result: true };
      });
      asStep(step)?.committed?.();
      return found;
    } catch (error) {
      asStep(step)?.rolledBack?.();
      await this.#giveUp(asJob(job), error);
      throw error;
    }
  }

  /**
   * Moves a failed job behind the others of its workspace: otherwise it would block them all. A replay ends at an event
   * that cannot be read; a catch-up and a deletion are guaranteed, and are tried again.
   */
  async #giveUp(job: Job | null, error: unknown): Promise<void> {
    if (job === null) return;
    const { pool } = this.#deps;
    const why = error instanceof Error ? error.message : String(error);
    const isBroken = !isInfrastructureFault(error);
    await pool
      .query(
        `update ops.webhook_jobs set
           not_before = clock_timestamp() + $2::float8 * interval '1 millisecond', updated_at = clock_timestamp(),
           status = case when $3::bool and kind = 'replay' then 'failed' else status end,
           failure = case when $3 then $4::text else failure end
         where id = $1 and status = 'running'`,
        [job.id, isBroken ? brokenPassMs : passMs, isBroken, why],
      )
      .catch(() => undefined);
  }
}

/**
 * The job of the workspace that has waited longest. NOTE: the instant is a subquery, so that Postgres uses the index.
 */
export const nextJob = async (tx: Pick<PoolClient, 'query'>, workspaceId: string): Promise<Job | null> => {
  const { rows } = await tx.query<Job>(
    `select j.id, j.kind, j.endpoint_id, j.workspace_id, j.cursor::text, j.from_inclusive::text, j.from_time, j.to_time, j.types,
       j.last_position::text, extract(epoch from j.settle_at - clock_timestamp())::float8 * 1000 as settles_in,
       j.known_epoch::text,
       (select e.state from ops.webhook_endpoints e where e.id = j.endpoint_id) as state
     from ops.webhook_jobs j
     where j.workspace_id = $1 and j.status = 'running' and j.not_before <= (select clock_timestamp())
     order by j.not_before limit 1 for update skip locked`,
    [workspaceId],
  );
  return rows[0] ?? null;
};

/** tsc does not see that the transaction assigned them. */
const asStep = (step: Step | null): Step | null => step;
const asJob = (job: Job | null): Job | null => job;
