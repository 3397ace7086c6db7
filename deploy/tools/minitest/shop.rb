# All that Minitest can say about a test.

require 'minitest/autorun'
require 'minitest/reporters'

Minitest::Reporters.use! [
  Minitest::Reporters::DefaultReporter.new(color: false),
  Minitest::Reporters::JUnitReporter.new('reports', false),
]

class ShopTest < Minitest::Test
  def test_passes
    puts 'to stdout ✓'
    assert true
  end

  def test_fails
    assert_equal({ name: 'Ann' }, { name: 'Bob' }, 'names ≠ <&> ]]>')
  end

  def test_raises
    raise ArgumentError, "first line\nsecond line"
  end

  def test_skips_itself
    skip 'no <printer> & "paper"'
  end

  def test_has_no_assertion; end

  ['ünïcode ✓', "<&>\"'", "line\nbreak"].each do |text|
    define_method("test_takes odd text: #{text}") { refute_includes text, "\n" }
  end

  # Fails once without a marker file, and then passes.
  def test_is_flaky
    first = !File.exist?('marker')
    File.write('marker', '')
    refute first
  end
end

class BrokenTest < Minitest::Test
  def setup
    raise 'before it' if name.end_with?('never_run')
  end

  def teardown
    raise 'after it'
  end

  def test_is_never_run; end

  def test_passes_but_breaks_later; end

  def test_fails_and_breaks_later
    flunk
  end
end

describe 'A shop <&>' do
  describe 'nested' do
    it('passes') { _(1).must_equal 1 }
    it('is to be written')
  end
end
