/**
 * A setting has a value that cannot be used. The message is for the operator: it names the setting, its target (never a
 * password), and the remedy. A process ends with it before it does any work.
 */
export class SetupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SetupError';
  }
}
