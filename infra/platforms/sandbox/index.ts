/** A social network of our own for test-mode credentials, the tour and the tests: real in its faults, harmless in its reach. */
export { SandboxNetwork } from './adapter.ts';
export { type Fault, type FaultName, faultNames, faultsOf } from './faults.ts';
export { type SandboxProfile, sandboxProfile } from './ids.ts';
export type { LedgerFilter, LedgerRow } from './ledger.ts';
export type { GivenMedia } from './media.ts';
export type { SandboxGap, SandboxOptions } from './options.ts';
