/**
 * A social network of our own for test keys, the tour and the tests. Its faults are real ones; its posts reach no
 * person.
 */
export { sandboxAccounts } from './accounts.ts';
export { SandboxNetwork } from './adapter.ts';
export { type Fault, type FaultName, faultNames, faultsOf } from './faults.ts';
export { type SandboxProfile, sandboxProfile } from './ids.ts';
export { sandboxCall, sandboxInboxes } from './imitations.ts';
export type { CommentRow, LedgerFilter, LedgerRow } from './ledger.ts';
export type { GivenMedia } from './media.ts';
export { sandboxAhead } from './network.ts';
export type { SandboxGap, SandboxOptions } from './options.ts';
