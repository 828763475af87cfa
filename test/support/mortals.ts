/** Child processes of a test that die, or stop, at a named fault point and end with the test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { built } from './bundles.ts';
import { until } from './until.ts';

export class Mortals {
  readonly #script: string;
  readonly #args: () => readonly string[];
  readonly #children = new Set<ChildProcess>();
  /** Sleeper → folder that holds a file once it has come to its point. */
  readonly #beds = new Map<ChildProcess, string>();

  /** @param script a program that prints a line once it works, and ends with its standard input */
  constructor(script: string, args: () => readonly string[]) {
    this.#script = script;
    this.#args = args;
  }

  /** Starts one and waits for its first line. `fault` is empty for one that must survive. */
  async child(
    fault: string,
    signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL',
    env: Readonly<Record<string, string>> = {},
  ): Promise<ChildProcess> {
    const faults: Record<string, string> = { POSTLINE_FAULT: fault, POSTLINE_FAULT_SIGNAL: signal };
    // Once: one that came to its point again after it woke would sleep for ever.
    const bed = signal === 'SIGSTOP' ? mkdtempSync(path.join(tmpdir(), 'postline-asleep-')) : null;
    if (bed !== null) faults.POSTLINE_FAULT_ONCE = bed;
    const made = spawn(process.execPath, [built(this.#script), ...this.#args()], {
      env: { ...process.env, ...env, ...faults },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#children.add(made);
    if (bed !== null) this.#beds.set(made, bed);
    const ended = once(made, 'close').then(() => {
      throw new Error(`${this.#script} ended before it was ready`);
    });
    ended.catch(() => undefined);
    await Promise.race([once(made.stdout as NodeJS.ReadableStream, 'data'), ended]);
    return made;
  }

  /** Waits until it died at its fault point. */
  async died(one: ChildProcess): Promise<void> {
    await until('the child died at its point', () => one.exitCode !== null || one.signalCode !== null, {
      withinMs: 60_000,
    });
    assert.equal(one.signalCode, 'SIGKILL', 'the child did not die at its point');
  }

  /** Waits until one that was started with SIGSTOP sleeps at its fault point. */
  async asleep(one: ChildProcess): Promise<void> {
    const bed = this.#beds.get(one) ?? '';
    await until('it sleeps', () => readdirSync(bed).length > 0);
  }

  /** Wakes a sleeper, which does what it would do next, and ends. */
  async wakeToEnd(one: ChildProcess): Promise<void> {
    // It gets this when it wakes, before it can take more work.
    one.kill('SIGTERM');
    one.kill('SIGCONT');
    if (one.exitCode === null && one.signalCode === null) await once(one, 'exit');
    assert.equal(one.exitCode, 0);
  }

  /** Ends those that are still alive. */
  async end(): Promise<void> {
    for (const bed of this.#beds.values()) rmSync(bed, { recursive: true, force: true });
    for (const one of this.#children) {
      if (one.exitCode !== null || one.signalCode !== null) continue;
      one.kill('SIGKILL');
      await once(one, 'exit');
    }
    this.#children.clear();
    this.#beds.clear();
  }
}
