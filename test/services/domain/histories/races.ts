import type { TargetStatus } from '#schemas/target.ts';
import type { CommandName } from './commands.ts';

/** Commands that exclude each other: of two that are both right in one state, the one that is stored first holds. */
export interface Race {
  readonly status: TargetStatus;
  readonly first: readonly CommandName[];
  readonly second: readonly CommandName[];
  /** With which the second is refused; null: it has nothing left to do. */
  readonly code: string | null;
  /** A thread goes on after one segment, and a native target is handed over for any time. */
  readonly only?: 'single' | 'managed';
}

const ends: readonly CommandName[] = [
  ...(['take over', 'published', 'failed', 'rate limited', 'deferred', 'unknown'] as const),
  ...(['handed over', 'outside window'] as const),
];
const settled: readonly CommandName[] = [
  ...(['settle published', 'settle published by hand', 'settle failed', 'settle absent'] as const),
];
const commentEnds: readonly CommandName[] = ['commented', 'comment refused', 'comment unknown', 'lapse comment'];

const race = (
  status: TargetStatus,
  first: readonly CommandName[],
  second: readonly CommandName[],
  code: string | null,
  only?: NonNullable<Race['only']>,
): Race => ({ status, first, second, code, ...(only === undefined ? {} : { only }) });

export const races: readonly Race[] = [
  race('pending', ['start', 'refuse at claim', 'cancel'], ['start', 'refuse at claim'], 'not_claimable'),
  race('pending', ['start', 'refuse at claim'], ['reschedule'], 'target_not_pending'),
  race('pending', ['start'], ['cancel'], 'target_not_pending', 'managed'),
  race('pending', ['refuse at claim'], ['cancel'], 'target_not_pending'),
  race('pending', ['start', 'cancel'], ['revise'], 'target_not_pending'),
  race('pending', ['cancel'], ['reschedule'], 'target_not_pending'),
  race('pending', ['reschedule'], ['start'], 'not_due', 'managed'),
  race('pending', ['cancel'], ['cancel'], null),
  race('awaiting_approval', ['cancel'], ['reschedule', 'revise'], 'target_not_pending'),
  race('rate_limited', ['cancel', 'retry', 'requeue', 'reschedule'], ['retry'], 'target_not_retryable'),
  race('rate_limited', ['cancel', 'retry', 'requeue', 'reschedule'], ['requeue'], null),
  race('rate_limited', ['cancel'], ['reschedule'], 'target_not_pending'),
  race('publishing', ends, [...ends, 'upload', 'boundary'], 'claim_lost', 'single'),
  race('publishing', ['boundary'], ['boundary', 'deferred'], 'boundary_crossed'),
  race(
    'processing',
    ['settle published', 'settle failed'],
    ['settle published', 'settle failed'],
    'target_not_unknown',
  ),
  race('processing', ['settle published', 'settle failed', 'not shown'], ['not shown'], null),
  race('failed', ['retry', 'revise'], ['retry'], 'target_not_retryable'),
  race('outcome_unknown', settled, [...settled, 'settle handed over', 'look'], 'target_not_unknown', 'single'),
  race('handed_to_platform', ['cancel'], ['reschedule'], 'target_not_pending'),
  race(
    'handed_to_platform',
    ['settle published', 'settle failed', 'native unknown'],
    ['cancel', 'reschedule'],
    'target_not_pending',
  ),
  race('handed_to_platform', ['settle published', 'settle failed', 'native unknown'], ['undone', 'undo failed'], null),
  race(
    'handed_to_platform',
    ['settle published', 'settle failed', 'undone'],
    ['settle published', 'settle failed'],
    'target_not_unknown',
  ),
  race('handed_to_platform', ['undone'], ['undone', 'undo failed', 'native unknown'], null),
  race('published', ['start comment', 'refuse comment'], ['start comment', 'refuse comment'], 'claim_lost'),
  race('published', commentEnds, commentEnds, 'claim_lost'),
  race('published', ['removed'], ['removed'], null),
];
