(CNN) -- Story 3 begins

  It "goes on"  
and ends.

@highlight

First point 3

@highlight

Second”
