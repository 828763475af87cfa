import type { GateCode } from '#schemas/issues.ts';

/** One rule of a network that a target breaks. */
export interface GateError {
  /** The file at fault; null where no single file is. */
  readonly mediaId: string | null;
  /** JSON Pointer from the target or variant: `/content`, `/overrides/privacyLevel`, `/mediaIds`; `/coverMediaId`. */
  readonly path: string;
  readonly message: string;
  readonly code: GateCode;
}
