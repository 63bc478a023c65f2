/**
 * Tells a DTD of Meta-TF from one of XML: both end in `.dtd`.
 *
 * A DTD of XML begins with a declaration (`<`) or a reference to an entity (`%`), one of Meta-TF with a comment (`/`) or a name.
 * A text without content is neither.
 */
export function isMetaTF(text: string): boolean {
  return /^[\uFEFF\s]*[A-Za-z_/]/.test(text);
}
